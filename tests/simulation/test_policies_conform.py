"""What every policy must pass, one that gives random permits too: safety is not the policy's."""

import math
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shapes import PAGE

from gpushare.jobs import FIFO, ORDERS
from gpushare.native.doors import BY_CURVE, NO_LEASES, of_bits
from gpushare.native.library import NativeError
from gpushare.scheduling.leases import segment_bytes
from gpushare.scheduling.order import NATIVE, QUANTUM_S
from gpushare.scheduling.policies import MODES, POLICIES, Policy
from gpushare.scheduling.snapshot import Permit, Snapshot
from gpushare.simulation import Contention, Engine, JobOutcome, SimulatedJob
from gpushare.simulation.job import Variation
from gpushare.simulation.outcome import FAILED, OK
from gpushare.simulation.planner import SegmentBytes
from gpushare.simulation.rules import Rules

sys.path.append(str(Path(__file__).parent.parent.parent / "scripts" / "bench"))
from waiting import UNTIL_THEY_END, bounds_s


def random_permits(seed: int) -> Policy:
    """Permits from nowhere, others each time, some for jobs that are not there."""
    rng = random.Random(seed)

    def permit(account: int, after: int) -> Permit:
        made = rng.choice((None, 0, 1, 3, 10**6))
        return Permit(account, after, made, rng.random(), by_forecast=rng.random() < 0.3)

    def policy(snapshot: Snapshot) -> list[Permit]:
        accounts = [*(job.account for job in snapshot.jobs), 17]
        return [permit(a, b) for a in accounts for b in accounts if rng.random() < 0.8]

    return policy


SUBJECTS = sorted([*POLICIES, "random"])
MANAGED = sorted({*SUBJECTS} - {"unmanaged"})


def subject(name: str, seed: int) -> tuple[str, Policy]:
    """The governor's own policy, and the one that gives permits."""
    return ("zico", random_permits(seed)) if name == "random" else (name, POLICIES[name])


Vary = Callable[[int], Variation]
CONTENTION = Contention(3, 1.1)


def wrong_times(seed: int) -> Vary:
    return lambda n: Variation(time=random.Random(seed * 1000 + n).uniform(0.3, 3))


def wrong_bytes(seed: int) -> Vary:
    """5 % of the iterations exceed their curve by up to 10 %."""

    def vary(iteration: int) -> Variation:
        rng = random.Random(seed * 1000 + iteration)
        return Variation(held=rng.uniform(1, 1.1) if rng.random() < 0.05 else 1.0, time=rng.uniform(0.5, 2))

    return vary


@st.composite
def jobs(
    draw: st.DrawFn, vary: Callable[[int], Vary], most: int = 4, iterations: int = 6
) -> list[SimulatedJob]:
    made = []
    for i in range(draw(st.integers(2, most))):
        rises = draw(st.lists(st.integers(1, 40), min_size=1, max_size=6))
        residue = draw(st.integers(0, 6))
        up = [residue + sum(rises[: n + 1]) for n in range(len(rises))]
        late = draw(st.booleans())  # all is freed at the very end
        held = up + ([up[-1]] * len(up) if late else up[-2::-1])
        times = sorted(n * draw(st.sampled_from((0.001, 0.05, 0.3))) for n in range(len(held)))
        made.append(
            SimulatedJob(
                name=f"job {i}",
                held_bytes=tuple(h * PAGE for h in held),
                time_s=tuple(times),
                iteration_s=times[-1] + 0.01,
                residue_bytes=residue * PAGE,
                iterations=iterations,
                arrival_s=draw(st.sampled_from((0.0, 0.0, 0.2, 1.7))),
                vary=vary(draw(st.integers(0, 10**6))),
                priority=draw(st.integers(-1, 1)),
                has_profile=draw(st.sampled_from((True, True, True, False))),
                fails_at=draw(failures(iterations, len(held))),
            )
        )
    return made


def failures(iterations: int, steps: int) -> st.SearchStrategy[tuple[int, int] | None]:
    """In which iteration and step a job ends with an error: a third of them do."""
    some = st.tuples(st.integers(0, iterations - 1), st.integers(1, steps))
    return st.one_of(st.none(), st.none(), some)


def least_for(made: list[SimulatedJob]) -> int:
    """Bytes that the most demanding job needs beside the others' residues."""
    return max(j.peak_bytes - j.residue_bytes for j in made) + sum(j.residue_bytes for j in made)


def most_for(made: list[SimulatedJob]) -> int:
    """Bytes at which nobody waits."""
    return sum(j.peak_bytes for j in made) + 4 * PAGE


def budget_for(made: list[SimulatedJob], share: float) -> int:
    """The least, and a share of all that all want."""
    least, most = least_for(made), most_for(made)
    return least + 2 * PAGE + round(share * (most - least) / PAGE) * PAGE


class Checked(Engine):
    """Looks at the invariants after every event. `least_bytes`: the smallest budget that there was."""

    least_bytes = math.inf

    def advance(self) -> None:
        super().advance()
        self.look()

    def look(self) -> None:
        pool = self.governor.pool()
        assert pool.held_bytes <= pool.budget_bytes
        self.least_bytes = min(self.least_bytes, pool.budget_bytes)
        self.governor.check()


# Of leases: the policy's own ones, none, as small as can be, larger than any iteration.
SPLITS = (None, NO_LEASES, BY_CURVE, PAGE, 10 * PAGE, 10**6 * PAGE)
splits = st.sampled_from(SPLITS)
seeds = st.integers(0, 10**6)
# What `engine_for` takes beside jobs and a budget.
hows = st.fixed_dictionaries(
    {
        "seed": seeds,
        "split": splits,
        "order": st.sampled_from((FIFO, *ORDERS)),
        "quantum_s": st.sampled_from((0.0, QUANTUM_S)),
    }
)


def segments(split: int | None) -> SegmentBytes:
    return segment_bytes if split is None else lambda *_: split


def engine_for(
    name: str,
    made: list[SimulatedJob],
    budget_bytes: int,
    *,
    seed: int,
    split: int | None = None,
    order: str = FIFO,
    quantum_s: float = 0.0,
) -> Checked:
    """`seed` is that of random permits."""
    mechanism, policy = subject(name, seed)
    engine = Checked(
        made,
        policy=policy,
        mechanism=mechanism,
        budget_bytes=budget_bytes,
        contention=CONTENTION,
        modes=MODES.get(name, ()),
        segments=segments(split),
        rules=Rules(order=order),
    )
    engine.governor.order(NATIVE[order], round(quantum_s * 1e9))
    return engine


def run(name: str, made: list[SimulatedJob], budget_bytes: int, **how: Any) -> list[JobOutcome]:
    """As `engine_for` has it, to the end."""
    engine = engine_for(name, made, budget_bytes, **how)
    with engine.governor as governor:
        engine.run()
        assert governor.pool().held_bytes == 0
        return engine.outcomes()


def ends(job: SimulatedJob) -> str:
    """How it does by itself."""
    return FAILED if job.fails_at else OK


LOOSE = settings(deadline=None, max_examples=50, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", MANAGED)
@LOOSE
@given(made=jobs(wrong_times), share=st.floats(0, 1), how=hows)
def test_with_right_claims_every_job_ends_whatever_the_times(
    name: str,
    made: list[SimulatedJob],
    share: float,
    how: dict[str, Any],
) -> None:
    for one, job in zip(made, run(name, made, budget_for(made, share), **how), strict=True):
        assert job.status == ends(one), job
        assert job.overruns == 0 and job.copies_out == 0
        if how["order"] == FIFO and not how["quantum_s"]:
            assert job.most_passed <= 1  # the bound on waiting at a door


# What holds, and why, is in scripts/bench/waiting.py.
@pytest.mark.parametrize("name", MANAGED)
@settings(LOOSE, max_examples=20)
@given(
    made=jobs(wrong_times, iterations=20),
    share=st.floats(0, 1),
    how=hows,
)
def test_a_wait_is_bounded_in_each_order(
    name: str,
    made: list[SimulatedJob],
    share: float,
    how: dict[str, Any],
) -> None:
    budget = budget_for(made, share)
    came = run(name, made, budget, **how)
    bounds = bounds_s(
        made,
        came,
        CONTENTION,
        ahead=how["order"] if all(job.has_profile for job in made) else UNTIL_THEY_END,
        quantum_s=how["quantum_s"],
        budgets=(budget, budget),
        iterations=1 if name == "temporal" else 2,
    )
    for job, bound_s in zip(came, bounds, strict=True):
        assert job.longest_wait_s <= bound_s, job


@pytest.mark.parametrize("name", SUBJECTS)
@LOOSE
@given(
    made=jobs(wrong_bytes, most=8),
    share=st.floats(0, 1),
    how=hows,
)
def test_with_wrong_claims_nothing_hangs_or_exceeds_the_budget(
    name: str,
    made: list[SimulatedJob],
    share: float,
    how: dict[str, Any],
) -> None:
    for one, job in zip(made, run(name, made, budget_for(made, share), **how), strict=True):
        assert job.status == ends(one) or (job.message and "the budget is" in job.message), job


@pytest.mark.parametrize("name", ["zico", "greedy", "random"])
def test_the_check_is_exercised(name: str) -> None:
    """With starts that are not planned, iterations stall in the middle, and all the same all end."""
    stalled = 0
    for seed in range(20):
        rng = random.Random(seed)
        peak, steps = 40, 8
        held = tuple(
            (2 + round(peak * n / steps)) * PAGE for n in [*range(1, steps + 1), *range(steps - 1, 0, -1)]
        )
        made = [
            SimulatedJob(
                f"job {i}",
                held,
                tuple(0.1 * n for n in range(len(held))),
                0.1 * len(held),
                2 * PAGE,
                5,
                arrival_s=rng.uniform(0, 1),
                vary=wrong_times(rng.randrange(10**6)),
            )
            for i in range(3)
        ]
        ended = run(name, made, (round(1.6 * peak) + 10) * PAGE, seed=seed)
        assert all(job.status == "ok" for job in ended)
        stalled += any(job.memory_wait_s > 0 for job in ended)
    if name != "zico":
        assert stalled >= 6  # at least 30 % of the schedules


def change_budget(engine: Checked, accounts: range, wanted: int) -> None:
    """What is too little for a job that is there, or for what all keep, is refused, and changes nothing."""
    governor, before = engine.governor, engine.governor.pool().budget_bytes
    there = [a for a in accounts if governor.job(a).held_bytes]
    curves = [curve for a in there if (curve := governor.curve(a))]
    needs = max((byte for curve in curves for byte in curve.held_bytes), default=0)
    try:
        governor.set_budget(wanted)
    except NativeError as error:
        assert "the jobs need at least" in str(error)
        assert governor.pool().budget_bytes == before
    else:
        assert wanted >= needs
    engine.look()


@pytest.mark.parametrize("name", MANAGED)
@settings(LOOSE, max_examples=40)
@given(
    made=jobs(wrong_times, most=3),
    share=st.floats(0, 1),
    changes=st.lists(st.tuples(st.integers(1, 40), st.floats(0, 1.2)), max_size=5),
    how=hows,
)
def test_the_budget_may_change_while_they_run(
    name: str,
    made: list[SimulatedJob],
    share: float,
    changes: list[tuple[int, float]],
    how: dict[str, Any],
) -> None:
    """To anything. Who comes when it is too small for it may be refused, and who is there be copied out."""
    engine = engine_for(name, made, budget_for(made, share), **how)
    with engine.governor as governor:
        for events, part in changes:
            for _ in range(events):
                if engine.running:
                    engine.advance()
            wanted = max(PAGE, round(part * most_for(made) / PAGE) * PAGE)
            change_budget(engine, range(1, len(made) + 1), wanted)
        engine.run()
        assert governor.pool().held_bytes == 0
        for one, job in zip(made, engine.outcomes(), strict=True):
            assert job.overruns == 0
            if engine.least_bytes >= least_for(made):
                assert job.status == ends(one) and job.copies_out == 0, job
            elif job.status != ends(one):  # it came after a cut to less than it needs by itself
                assert job.message and "the budget is" in job.message, job
                assert one.peak_bytes > engine.least_bytes, job


@pytest.mark.parametrize("name", MANAGED)
@settings(LOOSE, max_examples=40)
@given(
    made=jobs(wrong_times, most=6),
    share=st.floats(0, 1),
    masks=st.lists(st.tuples(st.integers(1, 30), st.integers(0, 127)), max_size=12),
    how=hows,
)
def test_any_jobs_may_be_set_aside_at_any_time(
    name: str,
    made: list[SimulatedJob],
    share: float,
    masks: list[tuple[int, int]],
    how: dict[str, Any],
) -> None:
    """And need not be told to come back: they do when nobody else is there to run instead."""
    engine = engine_for(name, made, budget_for(made, share), **how)
    with engine.governor as governor:
        for events, mask in masks:
            for _ in range(events):
                if engine.running:
                    engine.advance()
            governor.aside(of_bits(mask << 1))
            engine.look()
        engine.run()
        assert governor.pool().held_bytes == 0
        for one, job in zip(made, engine.outcomes(), strict=True):
            assert job.status == ends(one) and job.overruns == 0, job


PATTERNS = ((1.0, 0.3), (1.0, 1.0, 1.0, 0.4), (0.2, 0.6, 1.0), (1.0,))


def of_kinds(i: int, pattern: tuple[float, ...], seed: int, arrival_s: float) -> SimulatedJob:
    """Iterations of some kinds, mostly in turn. Long enough to be recognised by their first allocations."""
    rise, peak = 30, 40 + 7 * i
    held = [2 + round(peak * (n + 1) / rise) for n in range(rise)]
    held += held[-2::-1]

    def vary(iteration: int) -> Variation:
        rng = random.Random(seed * 1000 + iteration)
        scale = rng.choice(pattern) if rng.random() < 0.1 else pattern[iteration % len(pattern)]
        return Variation(held=scale, time=scale)

    return SimulatedJob(
        name=f"job {i}",
        held_bytes=tuple(h * PAGE for h in held),
        time_s=tuple(0.01 * n for n in range(len(held))),
        iteration_s=0.01 * len(held),
        residue_bytes=2 * PAGE,
        iterations=25,
        arrival_s=arrival_s,
        vary=vary,
    )


@pytest.mark.parametrize("name", MANAGED)
@settings(LOOSE, max_examples=12)
@given(
    kinds=st.lists(
        st.tuples(st.sampled_from(PATTERNS), st.integers(0, 99), st.floats(0, 1)), min_size=2, max_size=4
    ),
    share=st.floats(0, 1),
    split=splits,
    seed=seeds,
)
def test_kinds_of_iterations_are_safe(
    name: str, kinds: list[tuple[tuple[float, ...], int, float]], share: float, split: int | None, seed: int
) -> None:
    made = [of_kinds(i, *kind) for i, kind in enumerate(kinds)]
    for job in run(name, made, budget_for(made, share), seed=seed, split=split):
        assert job.status == "ok", job
        assert job.overruns == 0 and job.copies_out == 0


@pytest.mark.parametrize(("name", "leased"), [("waterwave", True), ("zico", False), ("temporal", False)])
def test_memory_comes_by_segment_under_waterwave(name: str, leased: bool) -> None:
    held = tuple((2 + n) * PAGE for n in [*range(200), *range(200, 0, -1)])
    made = [
        SimulatedJob(f"job {i}", held, tuple(0.001 * n for n in range(len(held))), 0.4, 2 * PAGE, 9)
        for i in range(2)
    ]
    engine = Checked(
        made, policy=POLICIES[name], mechanism=name, budget_bytes=300 * PAGE, contention=Contention(2, 1.0)
    )
    with engine.governor as governor:
        while engine.now_s < 2:
            engine.advance()
        assert all((governor.job(account).leases > 0) == leased for account in (1, 2))
        engine.run()
