"""Work done, solo times, phases."""

import pytest

from gpushare.scheduling.efficiency import doubt, efficiency
from gpushare.scheduling.meter import Meter, Progress, SoloTimes, phase


def test_a_clear_case_is_measured_sooner() -> None:
    meter = Meter()
    jobs = {1: Progress(0.0, 0.1), 2: Progress(0.0, 0.1)}
    meter.restart(jobs)
    meter.count(jobs)
    assert meter.trial_s(0.0) == meter.trial_s(-1.0) == meter.trial_s(0.01) == pytest.approx(0.2 + 2.0)
    assert meter.trial_s(0.1) == pytest.approx(0.2 + 1.0)
    assert meter.trial_s(1.0) == pytest.approx(0.2 + 0.4)


def test_the_meter_counts_work_of_jobs_with_different_lengths() -> None:
    meter = Meter()
    jobs = {1: Progress(10.0, 0.5), 2: Progress(0.0, 0.1)}
    meter.restart(jobs)
    meter.switch(0.0)
    meter.count(jobs)
    assert meter.read(0.5) is None and meter.read(1.0) is None  # the window begins here
    meter.count({1: Progress(14.0, 0.5), 2: Progress(10.0, 0.1)})
    reading = meter.read(3.0)
    assert reading and reading.stp == pytest.approx((4 * 0.5 + 10 * 0.1) / 2.0)
    assert reading.measured == pytest.approx(efficiency([1.0, 0.5]))
    assert reading.doubt == pytest.approx(doubt([1.0, 0.5], [0.125, 0.025])) and not reading.full
    assert meter.lost_s(3.0, 1.5) == pytest.approx(3.0 * (1 - efficiency([2 / 3, 1 / 3]) / 1.5))


def test_a_solo_time_that_was_disturbed_is_mended() -> None:
    times = SoloTimes()
    assert times.seconds(1, 10**8) == 0.1
    times.note(1, [0, 2 * 10**7, 3 * 10**7], 10**8)  # the rest of the iteration allocates nothing
    assert times.seconds(1, 10**8) == 0.1
    times.note(1, [0, 4 * 10**7, 6 * 10**7], 5 * 10**7)
    times.note(1, [0, 6 * 10**7, 11 * 10**7], 11 * 10**7)  # slower again, beside others
    assert times.seconds(1, 10**8) == 0.06
    times.note(2, [], 0)
    assert times.seconds(2, 10**8) == 0.1


def test_a_phase_is_of_size_not_of_small_change() -> None:
    assert phase([100, 1000, 100]) == phase([100, 1001, 100])
    assert phase([100, 1000, 100]) != phase([100, 1200, 100])
    assert phase([100] * 10) != phase([100] * 12)
    assert phase([]) == (0, 0)
