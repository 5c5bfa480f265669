"""Who is begun when, as a run has it (`scheduling.admission`)."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shapes import HEADROOM, PAGE

from gpushare.jobs import FIFO, PRIORITY
from gpushare.scheduling.policies import POLICIES
from gpushare.simulation import Contention, Engine, Outcome, SimulatedJob, simulate
from gpushare.simulation.rules import Rules
from gpushare.simulation.search import budgets

FREE = Contention(cores=64)
MANAGED = sorted({*POLICIES} - {"unmanaged"})


def keeper(name: str, residue: int, more: int, iterations: int = 10, **rest: object) -> SimulatedJob:
    """Keeps so many pages, and needs `more` for half of its iteration of a second."""
    held = tuple(pages * PAGE for pages in (residue + more, residue))
    return SimulatedJob(name, held, (0.0, 0.5), 1.0, residue * PAGE, iterations, **rest)


def run(jobs: list[SimulatedJob], pages: int, policy: str = "zico", order: str = FIFO) -> Outcome:
    rules = Rules(order=order)
    return simulate(jobs, policy=policy, budget_bytes=pages * PAGE, contention=FREE, rules=rules)


@pytest.mark.parametrize("policy", MANAGED)
def test_who_does_not_fit_is_begun_when_another_has_ended(policy: str) -> None:
    jobs = [keeper(name, 30, 20, 10 + n) for n, name in enumerate("abc")]
    enough = 3 * 30 + 20 + HEADROOM
    assert not any(job.queued_s for job in run(jobs, enough, policy).jobs)
    a, b, c = run(jobs, enough - 1, policy).jobs
    assert (a.status, b.status, c.status) == ("ok", "ok", "ok")
    assert not a.queued_s and not b.queued_s
    assert c.queued_s == c.longest_wait_s == min(a.end_s, b.end_s)
    assert c.waits_s >= c.queued_s and c.first_end_s == pytest.approx(c.queued_s + 1, abs=2)


def test_one_that_fits_passes_another_and_the_first_in_rank_goes_first() -> None:
    jobs = [keeper("a", 50, 40), keeper("b", 30, 50), keeper("c", 30, 50, priority=1), keeper("d", 5, 5)]
    found = run(jobs, 100, order=FIFO).jobs
    assert [bool(job.queued_s) for job in found] == [False, True, True, False]
    assert found[1].queued_s < found[2].queued_s
    found = run(jobs, 100, order=PRIORITY).jobs
    assert [bool(job.queued_s) for job in found] == [True, True, False, False]


def test_who_comes_later_is_queued_from_then_on() -> None:
    jobs = [keeper("a", 60, 30), keeper("b", 50, 20, arrival_s=3.0)]
    first, second = run(jobs, 100).jobs
    assert second.queued_s == pytest.approx(first.end_s - 3)


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_without_a_profile_a_job_is_begun_at_once(policy: str) -> None:
    jobs = [keeper("a", 30, 10), keeper("b", 80, 10, has_profile=False)]
    first, second = run(jobs, 100, policy).jobs
    assert not first.queued_s and not second.queued_s


def test_what_is_queued_beside_an_unknown_job_is_begun_once_that_is_known() -> None:
    """Before it is measured it needs what it holds, at its peak as if it kept all of that."""
    jobs = [keeper("a", 60, 30, has_profile=False), keeper("b", 30, 20, arrival_s=1.25)]
    enough = run(jobs, 60 + 30 + 30 + HEADROOM).jobs
    assert enough[1].queued_s == pytest.approx(2 - 1.25)  # its second iteration is the measured one
    first, second = run(jobs, 60 + 30 + 30 + HEADROOM - 1).jobs
    assert second.queued_s == pytest.approx(first.end_s - 1.25)


def test_without_management_nobody_is_queued() -> None:
    assert not any(
        job.queued_s for job in run([keeper("a", 60, 30), keeper("b", 50, 20)], 100, "unmanaged").jobs
    )


def test_who_never_fits_is_refused_after_the_others() -> None:
    fits, never = run([keeper("fits", 10, 10), keeper("never", 10, 100)], 100).jobs
    assert (fits.status, never.status) == ("ok", "out of memory")
    assert never.queued_s == pytest.approx(fits.end_s) and "asked for" in (never.message or "")


@pytest.mark.parametrize("policy", MANAGED)
def test_who_is_refused_first_leaves_the_others_no_wait(policy: str) -> None:
    never, b, c = run([keeper("never", 120, 5), keeper("b", 5, 5), keeper("c", 5, 5)], 100, policy).jobs
    assert never.status == "refused" and "asked for" in (never.message or "")
    assert (b.status, c.status) == ("ok", "ok") and not b.queued_s and not c.queued_s


def test_who_is_queued_is_begun_when_the_budget_grows() -> None:
    jobs = [keeper("a", 60, 30), keeper("b", 50, 20)]
    engine = Engine(jobs, policy=POLICIES["zico"], mechanism="zico", budget_bytes=100 * PAGE, contention=FREE)
    with engine.governor as governor:
        while engine.now_s < 3:
            engine.advance()
        assert engine.outcomes()[1].iterations == 0  # and nothing is known of it
        governor.set_budget(300 * PAGE)
        engine.run()
        second = engine.outcomes()[1]
    assert second.status == "ok" and second.queued_s < 4


@pytest.mark.parametrize("policy", MANAGED)
def test_all_can_run_from_where_nobody_is_queued(policy: str) -> None:
    jobs = [keeper(name, 30, 20) for name in "abc"]
    found = budgets(jobs, policy=policy, contention=FREE)
    assert found.all_run == (3 * 30 + 20 + HEADROOM) * PAGE


@st.composite
def keepers(draw: st.DrawFn) -> list[SimulatedJob]:
    made = []
    for n in range(draw(st.integers(2, 6))):
        job = keeper(f"job {n}", draw(st.integers(0, 40)), draw(st.integers(1, 40)), draw(st.integers(1, 4)))
        made.append(replace(job, arrival_s=draw(st.sampled_from((0.0, 0.0, 1.25, 2.5)))))
    return made


class Watched(Engine):
    """Looks after every event whether all that are begun meet Salus's condition."""

    def advance(self) -> None:
        super().advance()
        begun = [r.job for r in self._runners if r.account and r.state.name != "OVER"]
        keep = sum(job.residue_bytes for job in begun)
        room = self.governor.pool().for_jobs_bytes
        assert len(begun) < 2 or max(keep - j.residue_bytes + j.peak_bytes for j in begun) <= room
        queued = [r for r in self._runners if r.state.name == "QUEUED"]
        assert not queued or begun


@settings(max_examples=60, deadline=None)
@given(jobs=keepers(), share=st.floats(0, 1), policy=st.sampled_from(MANAGED))
def test_who_is_begun_has_room_to_run_and_all_are_in_the_end(
    jobs: list[SimulatedJob], share: float, policy: str
) -> None:
    least = max(job.peak_bytes for job in jobs)
    most = sum(job.peak_bytes for job in jobs)
    pages = HEADROOM + round((least + share * (most - least)) / PAGE)
    engine = Watched(
        jobs, policy=POLICIES[policy], mechanism=policy, budget_bytes=pages * PAGE, contention=FREE
    )
    with engine.governor:
        engine.run()
        assert all(outcome.status == "ok" for outcome in engine.outcomes())
