"""A factor that is put into the simulator comes out of what it does."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shapes import PAGE, budget, triangle

from gpushare.scheduling.policies import POLICIES
from gpushare.simulation import Contention, Engine, SimulatedJob
from gpushare.simulation.learning import factor_of


def stp(jobs: list[SimulatedJob], mode: str, budget_bytes: int, contention: Contention) -> float:
    engine = Engine(
        jobs, policy=POLICIES[mode], mechanism=mode, budget_bytes=budget_bytes, contention=contention
    )
    with engine.governor:
        engine.run()
        return sum(job.work_s for job in engine.outcomes()) / engine.window_s


@settings(max_examples=8, deadline=None)
@given(
    factor=st.floats(1, 3),
    mode=st.sampled_from(("zico", "waterwave")),
    peaks=st.sampled_from((1.4, 2.0)),
    cores=st.sampled_from((1.0, 1.5, 4.0)),
)
def test_the_factor_of_a_long_run_is_found(factor: float, mode: str, peaks: float, cores: float) -> None:
    if cores == 1.0 and factor > 2.5:
        return  # so slow together that nothing is left to learn from
    pair = [triangle("a", up=30, down=60, iterations=40), triangle("b", up=30, down=60, iterations=40)]
    measured = stp(pair, mode, budget(peaks), Contention(cores, factor))
    found = factor_of(
        pair, mode=mode, measured=measured, budget_bytes=budget(peaks), cores=cores, page_bytes=PAGE
    )
    if found is not None:
        assert found == pytest.approx(factor, rel=0.12)
    else:
        assert cores < 1.3  # shares of one core yield no more than turns


def test_jobs_that_cannot_overlap_teach_nothing() -> None:
    flat = [SimulatedJob(n, (900 * PAGE, 0), (0.0, 0.95), 1.0, 0, 10) for n in "ab"]
    found = factor_of(flat, mode="zico", measured=1.0, budget_bytes=budget(1.0), cores=4.0, page_bytes=PAGE)
    assert found is None
