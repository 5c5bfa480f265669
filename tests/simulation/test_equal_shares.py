"""Equal jobs do equally much, whatever the policy and the order."""

import random
from collections.abc import Callable

import pytest
from shapes import budget, triangle

from gpushare.jobs import FAIR, FIFO
from gpushare.scheduling.order import QUANTUM_S
from gpushare.scheduling.policies import MODES, POLICIES
from gpushare.simulation import Contention, Engine
from gpushare.simulation.job import Variation

JOBS, PEAKS = 4, 1.6
LOOK_S = 0.2  # an iteration takes 0.9 s at least
FEW = 4  # iterations of each, before which one of them more is a large share


def about_as_measured(seed: int) -> Callable[[int], Variation]:
    return lambda n: Variation(time=random.Random(seed * 1000 + n).uniform(0.9, 1.1))


@pytest.mark.parametrize("order", [FIFO, FAIR])
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", ["auto", "temporal", "greedy", "zico", "waterwave"])
def test_shares_of_equal_jobs_are_within_two_times_of_each_other(name: str, order: str, seed: int) -> None:
    """From the first few iterations on until the first job ends."""
    shape = {"up": 10, "down": 10, "iterations": 20}
    jobs = [triangle(f"job {i}", vary=about_as_measured(10 * seed + i), **shape) for i in range(JOBS)]
    engine = Engine(
        jobs,
        policy=POLICIES[name],
        mechanism=name,
        budget_bytes=budget(PEAKS),
        contention=Contention(JOBS),
        modes=MODES.get(name, ()),
        record=False,
    )
    with engine.governor as governor:
        governor.order(order, round(QUANTUM_S * 1e9))
        done = [0] * JOBS
        while max(done) < jobs[0].iterations:
            look_s = engine.now_s + LOOK_S
            while engine.running and engine.now_s < look_s:
                engine.advance()
            done = [outcome.iterations for outcome in engine.outcomes()]
            if sum(done) >= JOBS * FEW:
                assert max(done) <= 2 * min(done), (engine.now_s, done)
