"""Work done in windows, and how far a window may be off."""

from collections.abc import Callable

import pytest

from gpushare.scheduling.efficiency import doubt, efficiency
from gpushare.scheduling.meter import Meter, Reading
from gpushare.scheduling.progress import Progress


def test_a_clear_case_is_measured_sooner() -> None:
    meter = Meter()
    jobs = {1: Progress(0.0, 0.1), 2: Progress(0.0, 0.1)}
    meter.restart(jobs)
    meter.count(0.0, jobs)
    assert meter.trial_s(0.0) == meter.trial_s(-1.0) == meter.trial_s(0.01) == pytest.approx(0.2 + 2.0)
    assert meter.trial_s(0.1) == pytest.approx(0.2 + 1.0)
    assert meter.trial_s(1.0) == pytest.approx(0.2 + 0.4)


@pytest.mark.parametrize(
    ("solo_s", "turns", "early_s"), [(0.01, 2, 1.0), (0.01, 3, 1.5), (0.7, 5, 3.5), (0.01, 9, 2.0)]
)
def test_nothing_is_known_of_turns_before_each_job_has_had_one(
    solo_s: float, turns: int, early_s: float
) -> None:
    meter = Meter()
    jobs = {account: Progress(0.0, solo_s) for account in range(1, turns + 1)}
    meter.restart(jobs)
    assert meter.jobs == turns
    meter.count(0.0, jobs)
    assert meter.trial_s(1000.0, turns) == pytest.approx(2 * solo_s + early_s)
    meter.switch(0.0, turns)
    meter.begin_window(0.0)
    assert meter.read(early_s - 0.01) is None and meter.read(early_s)
    meter.switch(10.0)
    meter.begin_window(10.0)
    assert meter.read(10.0 + max(0.25, 4 * solo_s))


def test_the_meter_counts_work_of_jobs_with_different_lengths() -> None:
    meter = Meter()
    jobs = {1: Progress(10.0, 0.5), 2: Progress(0.0, 0.1)}
    meter.restart(jobs)
    meter.switch(0.0)
    assert meter.count(0.0, jobs) == 0
    assert meter.read(0.5) is None and meter.read(1.0) is None  # the window begins here
    assert meter.count(3.0, {1: Progress(14.0, 0.5), 2: Progress(10.0, 0.1)}) == pytest.approx(3.0)
    reading = meter.read(3.0)
    assert reading and reading.stp == pytest.approx((4 * 0.5 + 10 * 0.1) / 2.0)
    assert reading.measured == pytest.approx(efficiency([1.0, 0.5]))
    assert reading.doubt == pytest.approx(doubt([1.0, 0.5], [0.125, 0.025])) and not reading.full
    assert meter.lost_s(3.0, 1.5) == pytest.approx(3.0 * (1 - efficiency([2 / 3, 1 / 3]) / 1.5))


def measure(done: Callable[[float], float], *, waits: bool = False) -> Reading:
    """A second from the window's begin on, looked at as often as a mode that is new; the other job goes on evenly."""
    meter = Meter()
    jobs = {1: Progress(5.0, 0.1), 2: Progress(5.0, 0.1)}
    meter.restart(jobs)
    meter.switch(-1.0)
    for look in range(21):
        now_s = look * 0.05
        jobs = {1: Progress(5.0 + done(now_s), 0.1, waits=waits), 2: Progress(5.0 + 9 * now_s, 0.1)}
        meter.count(now_s, jobs)
        reading = meter.read(now_s)
    assert reading and not reading.full
    return reading


def test_what_a_job_does_alone_leaves_in_doubt_what_the_mode_is_worth() -> None:
    even = measure(lambda now_s: 4 * now_s)
    assert even.off == pytest.approx({1: 0.05, 2: 0.05})
    stalled = measure(lambda now_s: 4 * min(now_s, 0.4))
    assert stalled.off[1] == pytest.approx(0.5) and stalled.off[2] == pytest.approx(0.05)
    assert stalled.doubt > 0.2 > 2 * even.doubt
    assert measure(lambda now_s: 4 * min(now_s, 0.4) + 0.2 * max(0.0, now_s - 0.4)).off[1] == pytest.approx(
        0.5
    )
    assert measure(lambda now_s: now_s).off[1] == pytest.approx(0.05)  # contention makes jobs as slow as that
    assert measure(lambda now_s: 0.0, waits=True).off[1] == pytest.approx(0.05)
