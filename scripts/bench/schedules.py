"""Random schedules through every policy in the simulator: does anything exceed the budget, hang, or starve?

Right claims: iterations that last 0.3 to 3 times as long as measured, frees at the very end of some, arrivals, budgets
that change while jobs run, and in a third of the jobs iterations of several kinds, long enough to be recognised.
Wrong claims: 5 % of the iterations also hold up to 10 % more than their curve says. `random` is a policy that gives
permits from nowhere. A third of the schedules have another order than first in first out, or a quantum. Each is told
by its seed, random permits too. Who passes whom how often counts for first in first out without a quantum, the longest
wait with one as well; a job whose memory was copied out stays away from its door, so schedules with such a job are
counted apart.
"""

import argparse
import math
import random
import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from common import write
from simulated_sets import PAGE, of_pages

from gpushare.native.library import NativeError
from gpushare.scheduling.order import QUANTUM_S
from gpushare.scheduling.policies import MODES, POLICIES, Policy
from gpushare.scheduling.snapshot import Permit, Snapshot
from gpushare.simulation import Contention, Engine, JobOutcome, SimulatedJob, SimulationStuck
from gpushare.simulation.job import Variation

PART = 100
MOST = ("most often passed", "passed, one copied out", "longest wait, % of its bound")
KINDS = ((1.0, 0.3), (1.0, 1.0, 1.0, 0.4), (0.2, 0.6, 1.0))


def random_permits(seed: int) -> Policy:
    """Others at each plan."""
    rng = random.Random(seed)

    def policy(snapshot: Snapshot) -> list[Permit]:
        accounts = [job.account for job in snapshot.jobs]
        pairs = [(a, b) for a in accounts for b in accounts if a != b and rng.random() < 0.8]
        at = (None, 0, 1, 3, 10**6)
        return [Permit(a, b, rng.choice(at), 0.0, by_forecast=rng.random() < 0.3) for a, b in pairs]

    return policy


SUBJECTS = (*(name for name in POLICIES if name != "unmanaged"), "random")


class Watched(Engine):
    """Looks at the budget after every event."""

    def advance(self) -> None:
        super().advance()
        pool = self.governor.pool()
        if pool.held_bytes > pool.budget_bytes:
            raise AssertionError("more is held than the budget has")


def vary(seed: int, wrong: bool, kinds: tuple[float, ...]) -> Callable[[int], Variation]:
    def varied(iteration: int) -> Variation:
        rng = random.Random(seed * 1000 + iteration)
        over = wrong and rng.random() < 0.05
        kind = kinds[iteration % len(kinds)] if rng.random() < 0.9 else rng.choice(kinds)
        return Variation(held=kind * (rng.uniform(1, 1.1) if over else 1.0), time=rng.uniform(0.3, 3))

    return varied


def finer(held: list[int], times: int) -> list[int]:
    """The same curve with so many steps for each."""
    ends = [*held[1:], held[-1]]
    return [a + (b - a) * n // times for a, b in zip(held, ends, strict=True) for n in range(times)]


def job(rng: random.Random, i: int, iterations: int, wrong: bool) -> SimulatedJob:
    rises = [rng.randint(1, 40) for _ in range(rng.randint(1, 8))]
    residue = rng.randint(0, 6)
    up = [residue + sum(rises[: n + 1]) for n in range(len(rises))]
    held = up + ([up[-1]] * len(up) if rng.random() < 0.3 else up[-2::-1])
    step_s, kinds = rng.choice((0.01, 0.05, 0.2)), (1.0,)
    if rng.random() < 0.33:
        held, kinds = finer(held, 2 + 30 // len(held)), rng.choice(KINDS)
        step_s /= 10
    return of_pages(
        f"job {i}",
        held,
        residue,
        step_s,
        iterations=rng.randint(1, iterations),
        arrival_s=rng.choice((0.0, 0.0, rng.uniform(0, 3))),
        vary=vary(rng.randrange(10**9), wrong, kinds),
    )


def schedule(seed: int, subject: str, wrong: bool) -> dict[str, Any]:
    """Run one; what came of it."""
    rng = random.Random(seed)
    jobs = [job(rng, i, 12, wrong) for i in range(rng.randint(2, 8 if wrong else 5))]
    least = sum(j.residue_bytes for j in jobs) + max(j.peak_bytes - j.residue_bytes for j in jobs)
    most = sum(j.peak_bytes for j in jobs)
    budget = least + 4 * PAGE + round(rng.random() ** 2 * (most - least) / PAGE) * PAGE
    contention = Contention(4, (1.05, 1.05, 2.5)[seed % 3])  # with the last, sharing loses
    engine = Watched(
        jobs,
        policy=random_permits(seed) if subject == "random" else POLICIES[subject],
        mechanism="zico" if subject == "random" else subject,
        budget_bytes=budget,
        contention=contention,
        modes=MODES.get(subject, ()),
        record=False,
    )
    order, quantum_s = ("fifo", 0.0) if seed % 3 else (rng.choice(("fifo", "fair", "ranked")), QUANTUM_S)
    engine.governor.order(order, round(quantum_s * 1e9))
    changes = [] if wrong or rng.random() < 0.5 else [rng.uniform(0, 4) for _ in range(3)]
    with engine.governor as governor:
        while engine.running:
            engine.advance()
            if order == "ranked":
                governor.rank(rng.randint(1, len(jobs)), rng.randint(-2, 2))
            if changes and engine.now_s > changes[0]:
                changes.pop(0)
                change_budget(rng, engine, max(least, budget), most)
        outcomes = engine.outcomes()
        left = governor.pool().held_bytes
    assert left == 0
    return {
        "stalled": any(o.memory_wait_s > 0 for o in outcomes),
        "refused": sum(o.status != "ok" for o in outcomes),
        "refused though it fits": sum(
            o.status != "ok" and fits_beside_residues(jobs, i, budget) for i, o in enumerate(outcomes)
        ),
        "overruns": sum(o.overruns for o in outcomes),
        "copies_out": sum(o.copies_out for o in outcomes),
        "most_passed": max(o.most_passed for o in outcomes) if (order, quantum_s) == ("fifo", 0.0) else 0,
        "longest_wait": longest_wait(jobs, outcomes, contention, quantum_s) if order == "fifo" else 0.0,
    }


def longest_wait(
    jobs: Sequence[SimulatedJob], outcomes: Sequence[JobOutcome], contention: Contention, quantum_s: float
) -> float:
    """As a part of the most that the rules let a job wait, first in first out: of each other job the iteration that it
    is in and one more, and a quantum, in which that may go on where they take turns."""
    pace = contention.pace(0, range(len(jobs)), [job.threads for job in jobs])
    slowest = [
        max(j.vary(n).time for n in range(j.iterations)) * j.iteration_s / pace + o.memory_wait_s
        for j, o in zip(jobs, outcomes, strict=True)
    ]
    most = [sum(quantum_s + 2 * s for i, s in enumerate(slowest) if i != own) for own in range(len(jobs))]
    return max(o.longest_wait_s / s for o, s in zip(outcomes, most, strict=True))


def fits_beside_residues(jobs: list[SimulatedJob], index: int, budget: int) -> bool:
    """Whether the job's largest iteration has room while the others are at their doors."""
    one = jobs[index]
    most = max(one.vary(n).held for n in range(one.iterations))
    peak = one.residue_bytes + most * (one.peak_bytes - one.residue_bytes)
    return peak + PAGE + sum(j.residue_bytes for j in jobs if j is not one) <= budget


def change_budget(rng: random.Random, engine: Engine, least: int, most: int) -> None:
    """Up or down, to no less than what the jobs need; the governor may still say that it is too little now."""
    try:
        engine.governor.set_budget(least + round(rng.random() * (most - least) / PAGE) * PAGE)
    except NativeError as error:
        assert "the jobs need at least" in str(error)


Part = tuple[str, bool, int, int]  # whose, with wrong claims, the first seed, how many


def run(subject: str, wrong: bool, first: int, count: int) -> Counter[str]:
    found: Counter[str] = Counter(schedules=count)
    for seed in range(first, first + count):
        try:
            came = schedule(seed, subject, wrong)
        except (SimulationStuck, AssertionError) as error:
            print(
                f"{subject}, {'wrong' if wrong else 'right'} claims, seed {seed}: {error!r}", file=sys.stderr
            )
            found["hung or exceeded"] += 1
            continue
        found["stalled"] += came["stalled"]
        found["with overruns"] += came["overruns"] > 0
        found["with copies out"] += came["copies_out"] > 0
        found["with refusals"] += came["refused"] > 0
        found["refused though it fits"] += came["refused though it fits"] > 0
        passed = MOST[1] if came["copies_out"] else MOST[0]
        found[passed] = max(found[passed], came["most_passed"])
        if not came["copies_out"]:
            found[MOST[2]] = max(found[MOST[2]], math.ceil(100 * came["longest_wait"]))
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
    columns += ["with refusals", "refused though it fits", *MOST]
    table: list[list[Any]] = [["policy", "claims", *columns]]
    for subject, both in found.items():
        table += [
            [subject, claims, *(figures.get(c, 0) for c in columns)] for claims, figures in both.items()
        ]
    if args.print:
        print("\n".join("  ".join(str(cell) for cell in row) for row in table))
    else:
        write(args.name, shlex.join(["python", "scripts/bench/schedules.py", *sys.argv[1:]]), found, table)


if __name__ == "__main__":
    main()
