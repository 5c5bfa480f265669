"""What is believed of fewer jobs at once: limited by what all lose to contention, compared with all else."""

from collections.abc import Collection, Mapping, Sequence

import pytest

from gpushare.scheduling.efficiency import serial_share, slowed_down
from gpushare.scheduling.fewer import Resident, best_number
from gpushare.scheduling.finding import Finder
from gpushare.scheduling.meter import Reading
from gpushare.scheduling.modes import Mode, Modes
from gpushare.scheduling.snapshot import FEWER, TURNS

JOBS = range(1, 9)


def finder(by_number: Mapping[int, float], jobs: Sequence[int] = JOBS) -> tuple[Finder, Modes]:
    found = Finder()

    def forecast(accounts: Collection[int], modes: Sequence[str] | None = None) -> dict[str, float]:
        return {"zico": by_number.get(len(accounts), 1.0), TURNS: 1.0}

    found.see([Resident(account, 1 << 20) for account in jobs], forecast)
    return found, Modes({name: Mode(worth) for name, worth in found.restart(jobs).items()})


def of_curves(together: float, at_once: int) -> float:
    best = best_number(
        JOBS, lambda accounts, modes=None: {"zico": together if len(accounts) == at_once else 1.0}
    )
    assert best
    return best.efficiency


def test_as_long_as_sharing_is_not_measured_curves_are_believed() -> None:
    found, modes = finder({8: 2.0, 4: 3.6})
    assert found.fewer(modes) == pytest.approx(of_curves(3.6, 4) / 1.15 / 1.1)
    modes.note(TURNS, 0.9, in_force=True)  # turns say nothing of it
    assert found.fewer(modes) == pytest.approx(of_curves(3.6, 4) / 1.15 / 1.1)


def test_what_sharing_does_less_than_forecast_limits_fewer_too() -> None:
    found, modes = finder({8: 2.0, 4: 3.6})
    modes.note("zico", 1.6, in_force=True)
    limited = slowed_down(of_curves(3.6, 4), serial_share(2.0, 1.6))
    assert found.fewer(modes) == pytest.approx(limited / 1.15 / 1.1)
    modes.note("zico", 2.4, in_force=True)  # more than forecast is no reason to believe more
    assert found.fewer(modes) == pytest.approx(of_curves(3.6, 4) / 1.15 / 1.1)


def test_two_jobs_are_never_fewer() -> None:
    found, modes = finder({2: 1.0}, [1, 2])
    assert found.fewer(modes) is None


def test_among_other_jobs_sharing_is_believed_to_do_no_more_than_before() -> None:
    curves = {8: 2.4, 4: 3.6}
    found, modes = finder(curves)
    found.fewer(modes)
    found.entered(FEWER, 0.0)
    found.worth(FEWER, Reading(2.5, 0.0, True, 2.5, {}, {}))
    before = Modes({"zico": Mode(1.6, measured=True), TURNS: Mode(1.0)})
    kept = found.still_fewer(modes, before)
    assert kept and kept["zico"].worth == 1.6 and not kept["zico"].measured
    assert kept[FEWER].worth == pytest.approx(2.5 / 1.15)  # as it was measured, whatever sharing loses
    before["zico"] = Mode(2.3, measured=True)
    assert found.still_fewer(modes, before) is None
    curves[8] = 3.1
    found.restart(JOBS)
    before["zico"] = Mode(1.6, measured=True)
    assert found.still_fewer(modes, before) is None  # by the curves all at once are about as good
