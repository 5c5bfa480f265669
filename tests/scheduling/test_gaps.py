"""Modes of jobs that stand still of their own accord again and again, as between their epochs."""

from collections.abc import Mapping

import pytest

from gpushare.scheduling.pace import Pace
from gpushare.scheduling.progress import Progress
from gpushare.scheduling.snapshot import TURNS

_STEP_S, _SOLO_S = 0.005, 0.02


class Epochs:
    """Two jobs that do nothing for `gap_s` in every `period_s`, not at the same time, and else what the mode yields."""

    def __init__(
        self, yields: Mapping[str, float], forecast: Mapping[str, float], period_s: float, gap_s: float
    ) -> None:
        self.pace = Pace()
        self.yields, self.forecast = yields, dict(forecast)
        self.period_s, self.gap_s = period_s, gap_s
        self.done = {1: 1e-6, 2: 1e-6}
        self.trials: dict[str, int] = {}

    def run(self, seconds: float) -> None:
        now_s = look_s = 0.0
        on_trial = None
        while now_s < seconds:
            if now_s >= look_s - 1e-9:
                jobs = {account: Progress(done, _SOLO_S) for account, done in self.done.items()}
                mode = self.pace.look(now_s, jobs, lambda _, of=None: self.forecast) or TURNS
                before, on_trial = on_trial, mode if self.pace.on_trial else None
                if on_trial and on_trial != before:
                    self.trials[on_trial] = self.trials.get(on_trial, 0) + 1
                look_s = now_s + self.pace.look_again_s
            for account in self.done:
                if (now_s + account * self.period_s / 2) % self.period_s >= self.gap_s:
                    self.done[account] += self.yields[mode] / 2 * _STEP_S / _SOLO_S
            now_s += _STEP_S


@pytest.fixture(params=[(1.0, 0.4), (1.5, 0.5), (2.5, 0.6), (4.0, 0.6)])
def epochs(request: pytest.FixtureRequest) -> tuple[float, float]:
    """Period and gap, in seconds."""
    found: tuple[float, float] = request.param
    return found


def test_a_worse_mode_is_measured_in_few_trials(epochs: tuple[float, float]) -> None:
    jobs = Epochs(
        {"zico": 1.2, "waterwave": 0.8, TURNS: 1.0}, {"zico": 1.2, "waterwave": 1.19, TURNS: 1.0}, *epochs
    )
    jobs.run(900)
    modes = jobs.pace.yields.modes
    assert jobs.pace.mode == "zico" and modes["zico"].seconds > 0.97 * 900
    assert modes["waterwave"].efficiency is not None and jobs.trials["waterwave"] <= 4


def test_a_better_mode_is_found_all_the_same(epochs: tuple[float, float]) -> None:
    jobs = Epochs(
        {"zico": 1.0, "waterwave": 1.3, TURNS: 1.0}, {"zico": 1.5, "waterwave": 1.49, TURNS: 1.0}, *epochs
    )
    jobs.run(600)
    assert jobs.pace.mode == "waterwave"
    assert jobs.pace.yields.modes["waterwave"].seconds > 0.9 * 600
