"""Jobs whose true yields are known, under a `Pace`: what is chosen, when, and what finding out costs."""

import itertools
from collections.abc import Iterator, Mapping

from hypothesis import strategies as st

from gpushare.scheduling.efficiency import efficiency
from gpushare.scheduling.pace import Pace
from gpushare.scheduling.progress import Progress
from gpushare.scheduling.snapshot import GROUPS, TURNS
from gpushare.scheduling.trials import TRIALS_SHARE


class Jobs:
    """Jobs with another yield in each mode. `forecast` is what curves would say.

    All have the same part in it, or, in a mode of `parts`, the first job that one and the rest what is left. The
    machine does `speed` times as much per second.
    """

    def __init__(
        self, solo_s: list[float], forecast: Mapping[str, float] | None = None, **yields: float
    ) -> None:
        self.pace = Pace()
        self.solo_s = dict(enumerate(solo_s, 1))
        self.yields = {TURNS: 1.0, **yields}
        self.forecast = {**self.yields, TURNS: 1.0} if forecast is None else {**forecast, TURNS: 1.0}
        self.parts: dict[str, float] = {}
        self.phase: tuple[int, ...] = ()
        self.now_s = 0.0
        self.late_s: Iterator[float] = itertools.repeat(0.0)  # each look
        self.speed = 1.0
        self.done = dict.fromkeys(self.solo_s, 1e-6)  # they have begun
        self.spent_s: dict[str, float] = {}
        self.on_trial_s = self.lost_on_trial_s = self.shared_s = 0.0
        self.switches = 0
        self.home: str | None = None

    def run(self, seconds: float) -> None:
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            self.step()

    def step(self) -> None:
        jobs = {a: Progress(self.done[a], s, self.phase) for a, s in self.solo_s.items()}
        before = self.pace.mode
        mode = self.pace.look(self.now_s, jobs, lambda _: self.forecast)
        self.switches += before != mode
        passed_s = self.pace.look_again_s + next(self.late_s)
        self.now_s += passed_s
        rate = 1.0 if mode is None else self.yields[mode]
        first = self.parts.get(mode or "", 1 / len(self.solo_s))
        for account, solo_s in self.solo_s.items():
            part = first if account == 1 else (1 - first) / max(1, len(self.solo_s) - 1)
            self.done[account] += self.speed * rate * passed_s * part / solo_s
        if mode is None:
            return
        self.spent_s[mode] = self.spent_s.get(mode, 0.0) + passed_s
        self.shared_s += passed_s
        if not self.pace.on_trial:
            self.home = mode
        else:
            assert self.home is not None
            self.on_trial_s += passed_s
            self.lost_on_trial_s += max(0.0, 1 - rate / self.yields[self.home]) * passed_s

    @property
    def work_s(self) -> float:
        return sum(self.done[a] * s for a, s in self.solo_s.items())


class Contending:
    """Jobs of which each takes longer by a part of its solo time for each other one that runs; the same for either
    of a pair, where only one is named."""

    def __init__(
        self,
        jobs: int,
        slowed: Mapping[tuple[int, int], float],
        forecast: float | None = None,
        solo_s: float = 0.05,
    ) -> None:
        self.pace, self.now_s, self.phase, self.solo_s = Pace(), 0.0, (0,), solo_s
        self.slowed = {**{(j, i): f for (i, j), f in slowed.items()}, **slowed}
        self.forecast = forecast
        self.done = dict.fromkeys(range(1, jobs + 1), 1e-6)
        self.spent_s: dict[str, float] = {}
        self.efficiency_s = self.shared_s = 0.0
        self.speed = 1.0
        self.taken: list[str] = []

    def rates(self, mode: str) -> dict[int, float]:
        groups = {TURNS: (frozenset(self.done),), GROUPS: self.pace.groups}.get(mode, ())
        mine = {a: next((g for g in groups if a in g), frozenset({a})) for a in self.done}

        def beside(a: int) -> float:
            return sum(self.slowed.get((a, o), 0.0) / len(mine[o]) for o in self.done if o not in mine[a])

        return {a: 1 / (1 + beside(a)) / len(mine[a]) for a in self.done}

    def run(self, seconds: float) -> None:
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            jobs = {a: Progress(done, self.solo_s, self.phase) for a, done in self.done.items()}
            tried, lost_s = self.pace.on_trial, self.pace.yields.lost_s
            mode = self.pace.look(
                self.now_s, jobs, lambda counted: {"zico": self.forecast or float(len(counted)), TURNS: 1.0}
            )
            assert mode
            if tried and self.pace.yields.lost_s > lost_s:
                assert self.pace.yields.lost_s <= TRIALS_SHARE * self.shared_s + 1e-9
            if self.taken[-1:] != [mode]:
                self.taken.append(mode)
            passed_s, rates = self.pace.look_again_s, self.rates(mode)
            self.now_s += passed_s
            self.shared_s += passed_s
            self.spent_s[mode] = self.spent_s.get(mode, 0.0) + passed_s
            self.efficiency_s += efficiency([*rates.values()]) * passed_s
            for a, rate in rates.items():
                self.done[a] += self.speed * rate * passed_s / self.solo_s


class InGroups(Contending):
    """In groups they come to these rates, whatever was to be expected."""

    def __init__(
        self, jobs: int, slowed: Mapping[tuple[int, int], float], in_groups: dict[int, float]
    ) -> None:
        super().__init__(jobs, slowed)
        self.in_groups = in_groups

    def rates(self, mode: str) -> dict[int, float]:
        return self.in_groups if mode == GROUPS else super().rates(mode)


solo = st.lists(st.floats(0.001, 0.5), min_size=2, max_size=5)
rates = st.floats(0.3, 3.0)
