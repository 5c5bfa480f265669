"""Solo times and phases of jobs."""

import random

import pytest

from gpushare.native import doors
from gpushare.scheduling.progress import Measured, Phases, SoloTimes


def test_a_solo_time_that_was_disturbed_is_mended() -> None:
    times = SoloTimes()
    assert times.seconds(1, 10**8, 0) == 0.1  # none has come yet
    assert times.seconds(1, 10**8, 9 * 10**7) == 0.1
    assert times.seconds(1, 10**8, 3 * 10**7) == 0.06
    for _ in range(3):
        times.seconds(1, 10**8, 6 * 10**7)
    assert times.seconds(1, 10**8, 6 * 10**7) == pytest.approx(0.0525)
    for _ in range(9):  # slower again, beside others
        assert times.seconds(1, 10**8, 11 * 10**7) == pytest.approx(0.0525)
    assert times.seconds(2, 10**8, 0) == 0.1


def test_a_solo_time_is_not_that_of_the_shortest_of_many() -> None:
    drawn, times = random.Random(0), SoloTimes()
    for _ in range(500):
        told_s = times.seconds(1, 5 * 10**6, drawn.randint(10**6, 2 * 10**6))
    assert 0.00107 < told_s < 0.0015


def test_a_phase_begins_where_sizes_have_grown_by_a_tenth() -> None:
    phases = Phases()
    first = phases.of(1, (1000, 100))
    for size in range(1000, 1100, 5):  # wherever steps of a tenth would lie
        assert phases.of(1, (size, 100)) == first
    second = phases.of(1, (1101, 100))
    assert second != first and phases.of(1, (1200, 100)) == second
    assert phases.of(1, (1200, 111)) != second
    assert phases.of(2, (1, 1)) == (1, 1)


def test_progress_is_counted_in_the_kind_that_was_profiled() -> None:
    measured = Measured()
    told = doors.Progress(7.5, 10**8, 9.25, 6 * 10**7, (4096, 30), True)
    job = measured.of(1, told)
    assert (job.iterations, job.solo_s, job.phase, job.waits) == (9.25, 0.06, (4096, 30), True)
