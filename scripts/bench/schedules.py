"""Random schedules through every policy in the simulator: does anything exceed the budget, hang, or starve?

Right claims: iterations that last 0.3 to 3 times as long as measured, frees at the very end of some, arrivals, and in a
third of the jobs iterations of several kinds, long enough to be recognised. Wrong claims: 5 % of the iterations also
hold up to 10 % more than their curve says, and kinds come that a profile does not show. A sixth of the jobs end with an
error in the middle of an iteration. In a third of the schedules some jobs have no profile, and are measured first. In
half of them the budget changes while jobs run, in a quarter to as little as half of what all need at once: a cut that
is too deep must be refused. `random` is a policy that gives permits from nowhere; in `set aside`, with
those of `zico`, any jobs are set aside at any time, which `auto` does where fewer at once do more. Each schedule is
told by its seed, random permits too.

A third of the schedules are first in first out without a quantum: there one job is passed at most once by each other
one. The others have any order, with the quantum as shipped or without. The longest wait is measured against the bound
that the order has (`waiting.py`). Orders by rank, `srtf` and `priority`, have none by design for as long as those are
there who go first: a job must not wait longer than until these have ended and, after that, as first in first out.
`reranked` are ranks that change at random, where those may be all others. Where some jobs are measured first, their
set-ups wait for each other too: that this keeps to the same bound is measured here, and not proved. Three sorts of
schedules are counted apart, since there a job may wait until others end, whatever the order, and be passed meanwhile:
with a job whose memory was copied out, or that was set aside, and with a budget that was cut below what all jobs need
at once (with wrong claims: more than they say).
"""

import argparse
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from common import conclude
from drawn_schedules import RERANKED, Drawn, draw
from simulated_sets import PAGE
from waiting import UNTIL_THEY_END, bounds_s, largest_rise

from gpushare.jobs import FIFO, ORDERS
from gpushare.native.doors import of_bits
from gpushare.native.library import NativeError
from gpushare.scheduling.order import NATIVE
from gpushare.scheduling.policies import MODES, POLICIES, Policy
from gpushare.scheduling.snapshot import Permit, Snapshot
from gpushare.simulation import Engine, JobOutcome, SimulatedJob, SimulationStuck
from gpushare.simulation.outcome import FAILED, OK
from gpushare.simulation.rules import Rules

PART = 100
RANDOM, SET_ASIDE = "random", "set aside"
ASIDE_OFTEN = 0.03  # of events, after which others are set aside
MEASURED = "some measured first"
WAITS = {
    sort: f"longest wait, % of its bound: {sort}" for sort in (*ORDERS, RERANKED, MEASURED, UNTIL_THEY_END)
}
PASSED, PASSED_APART = "most often passed", "passed, those apart"
MOST = (PASSED, PASSED_APART, *WAITS.values())


def random_permits(seed: int) -> Policy:
    """Others at each plan."""
    rng = random.Random(seed)

    def policy(snapshot: Snapshot) -> list[Permit]:
        accounts = [job.account for job in snapshot.jobs]
        pairs = [(a, b) for a in accounts for b in accounts if a != b and rng.random() < 0.8]
        at = (None, 0, 1, 3, 10**6)
        return [Permit(a, b, rng.choice(at), 0.0, by_forecast=rng.random() < 0.3) for a, b in pairs]

    return policy


SUBJECTS = (*(name for name in POLICIES if name != "unmanaged"), RANDOM, SET_ASIDE)


class Watched(Engine):
    """Looks at the budget after every event. `least_bytes`, `most_bytes`: of the budgets that there were."""

    least_bytes, most_bytes = math.inf, 0.0

    def advance(self) -> None:
        super().advance()
        self.look()

    def look(self) -> None:
        """To be called after each change of the budget."""
        pool = self.governor.pool()
        if pool.held_bytes > pool.budget_bytes:
            raise AssertionError("more is held than the budget has")
        self.least_bytes = min(self.least_bytes, pool.budget_bytes)
        self.most_bytes = max(self.most_bytes, pool.budget_bytes)


def engine_for(drawn: Drawn, seed: int, subject: str) -> Watched:
    ranked = drawn.order == RERANKED
    name = "zico" if subject in (RANDOM, SET_ASIDE) else subject
    engine = Watched(
        drawn.jobs,
        policy=random_permits(seed) if subject == RANDOM else POLICIES[name],
        mechanism=name,
        budget_bytes=drawn.budget,
        contention=drawn.contention,
        modes=MODES.get(subject, ()),
        record=False,
        rules=Rules(order=FIFO if ranked else drawn.order),
    )
    engine.governor.order("ranked" if ranked else NATIVE[drawn.order], round(drawn.quantum_s * 1e9))
    return engine


def schedule(seed: int, subject: str, wrong: bool) -> Counter[str]:
    """Run one; what came of it."""
    rng = random.Random(seed)
    drawn = draw(rng, seed, wrong)
    jobs, changes = drawn.jobs, list(drawn.changes)
    engine = engine_for(drawn, seed, subject)
    found, masks = Counter[str](), random.Random(seed)
    with engine.governor as governor:
        while engine.running:
            engine.advance()
            if subject == SET_ASIDE and masks.random() < ASIDE_OFTEN:
                governor.aside(of_bits(masks.getrandbits(len(jobs)) << 1))
            if drawn.order == RERANKED:
                governor.rank(rng.randint(1, len(jobs)), rng.randint(-2, 2))
            if changes and engine.now_s > changes[0]:
                changes.pop(0)
                found += change_budget(rng, engine, drawn)
        outcomes = engine.outcomes()
        pool = governor.pool()
        governor.check()
    assert pool.held_bytes == 0, "something is held at the end"
    for j, o in zip(jobs, outcomes, strict=True):
        if o.status == FAILED:
            assert j.fails_at and o.iterations == j.fails_at[0]
        elif o.status == OK:
            assert not j.fails_at and o.iterations == j.iterations
        else:
            assert o.message and "the budget is" in o.message, "refused without the figures"
    refused = [i for i, o in enumerate(outcomes) if o.status not in (OK, FAILED)]
    found["cuts given up"] = pool.cuts_given_up
    found["ends in mid-iteration"] = sum(o.status == FAILED for o in outcomes)
    found["measured first"] = sum(not j.has_profile for j in jobs)
    found["stalled"] = any(o.memory_wait_s > 0 for o in outcomes)
    found["with overruns"] = any(o.overruns for o in outcomes)
    found["with copies out"] = any(o.copies_out for o in outcomes)
    found["with refusals"] = bool(refused)
    least = int(engine.least_bytes)
    found["refused though it fits"] = any(fits_beside_residues(jobs, i, least) for i in refused)
    note_waits(found, drawn, engine, outcomes, set_aside=subject == SET_ASIDE)
    return found


def note_waits(
    found: Counter[str], drawn: Drawn, engine: Watched, outcomes: Sequence[JobOutcome], *, set_aside: bool
) -> None:
    """How often jobs were passed, and the longest wait, as a part of the most that the rules allow."""
    least, most = int(engine.least_bytes), int(engine.most_bytes)
    apart = found["with copies out"] or least < needed(drawn.jobs) or any(o.queued_s for o in outcomes)
    apart = apart or set_aside
    passed = max(o.most_passed for o in outcomes)
    if apart:
        found[PASSED_APART] = passed
    elif drawn.order == FIFO and not drawn.quantum_s:
        found[PASSED] = passed
    bounds = bounds_s(
        drawn.jobs,
        outcomes,
        drawn.contention,
        ahead=UNTIL_THEY_END if apart or drawn.order == RERANKED else drawn.order,
        quantum_s=drawn.quantum_s,
        budgets=(least, most),
    )
    longest = max(o.longest_wait_s / bound_s for o, bound_s in zip(outcomes, bounds, strict=True))
    sort = drawn.order if all(j.has_profile for j in drawn.jobs) else MEASURED
    found[WAITS[UNTIL_THEY_END if apart else sort]] = math.ceil(100 * longest)


def needed(jobs: Sequence[SimulatedJob]) -> float:
    """By all at once: the largest iteration that there is, whatever was claimed, beside what all keep."""
    return sum(job.residue_bytes for job in jobs) + max(map(largest_rise, jobs))


def fits_beside_residues(jobs: list[SimulatedJob], index: int, budget: int) -> bool:
    """Whether the job's largest iteration has room while the others are at their doors."""
    one = jobs[index]
    peak = one.residue_bytes + largest_rise(one)
    return peak + PAGE + sum(j.residue_bytes for j in jobs if j is not one) <= budget


def change_budget(rng: random.Random, engine: Watched, drawn: Drawn) -> Counter[str]:
    """To what may be too little for what jobs need all at once, for one of them, or for what they keep."""
    wanted = drawn.lowest + round(rng.random() * (drawn.most - drawn.lowest) / PAGE) * PAGE
    cut = wanted < engine.governor.pool().budget_bytes
    try:
        engine.governor.set_budget(wanted)
    except NativeError as error:
        assert "the jobs need at least" in str(error)
        return Counter({"cuts asked": 1, "cuts refused": 1}) if cut else Counter()
    engine.look()
    return Counter({"cuts asked": 1, "cuts taken": 1}) if cut else Counter()


Part = tuple[str, bool, int, int]  # whose, with wrong claims, the first seed, how many


def run(subject: str, wrong: bool, first: int, count: int) -> Counter[str]:
    found: Counter[str] = Counter(schedules=count)
    for seed in range(first, first + count):
        try:
            came = schedule(seed, subject, wrong)
        except (SimulationStuck, AssertionError, NativeError) as error:
            print(
                f"{subject}, {'wrong' if wrong else 'right'} claims, seed {seed}: {error!r}", file=sys.stderr
            )
            found["hung or exceeded"] += 1
            continue
        found = together(found, came)
    return found


def together(one: Counter[str], other: Counter[str]) -> Counter[str]:
    """Of both; who was passed most often was so in one of them."""
    most = {key: max(one[key], other[key]) for key in (*one, *other) if key in MOST}
    return Counter({**(one + other), **most})


def run_all(parts: Sequence[Part], seconds: float) -> dict[tuple[str, bool], Counter[str]]:
    """What came of them, in so many processes as there are cores. No new part begins when the time is up."""
    found: dict[tuple[str, bool], Counter[str]] = {}
    deadline = time.monotonic() + seconds
    with ProcessPoolExecutor() as processes:
        waiting = {processes.submit(run, *part): part for part in parts}
        for future in as_completed(waiting):
            subject, wrong, *_ = waiting[future]
            if not future.cancelled():
                found[subject, wrong] = together(found.get((subject, wrong), Counter()), future.result())
            if time.monotonic() > deadline:
                for other in waiting:
                    other.cancel()
    return found


def in_parts(subjects: Sequence[str], first: int, right: int, wrong: int) -> list[Part]:
    """Each subject's schedules in small parts, all subjects in turns."""
    found = []
    for at in range(0, max(right, wrong), PART):
        for subject in subjects:
            for is_wrong, count in ((False, right), (True, wrong)):
                if at < count:
                    found.append((subject, is_wrong, first + at, min(PART, count - at)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--right", type=int, default=20_000, help="schedules of each policy with right claims"
    )
    parser.add_argument("--wrong", type=int, default=2_000, help="with wrong claims")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin nothing new after so long")
    parser.add_argument("--policies", default=",".join(SUBJECTS))
    parser.add_argument("--first", type=int, default=0, help="seed of the first schedule")
    parser.add_argument("--seed", type=int, help="only this schedule, and what came of it")
    parser.add_argument("--name", default="schedules")
    parser.add_argument("--print", action="store_true", help="write no results")
    args = parser.parse_args()
    subjects = args.policies.split(",")
    if args.seed is not None:
        for subject in subjects:
            print(subject, {wrong: schedule(args.seed, subject, wrong) for wrong in (False, True)})
        return
    parts = in_parts(subjects, args.first, args.right, args.wrong)
    came = run_all(parts, 60 * args.minutes)
    found = {
        subject: {
            claims: dict(came[subject, claims == "wrong"])
            for claims in ("right", "wrong")
            if (subject, claims == "wrong") in came
        }
        for subject in subjects
    }
    columns = ["schedules", "hung or exceeded", "stalled", "with overruns", "with copies out"]
    columns += ["with refusals", "refused though it fits", "cuts asked", "cuts taken", "cuts refused"]
    columns += ["cuts given up", "ends in mid-iteration", "measured first", *MOST]
    table: list[list[Any]] = [["policy", "claims", *columns]]
    for subject, both in found.items():
        table += [
            [subject, claims, *(figures.get(c, 0) for c in columns)] for claims, figures in both.items()
        ]
    conclude(args, found, table)


if __name__ == "__main__":
    main()
