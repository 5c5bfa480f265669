"""What the simulator is held against (`simulation.py`): profiles of the examples, and runs of them with few steps and
with many, of which the difference has no start-up in it."""

import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from common import EXAMPLES, profile, run_gpushare

from gpushare.profiles import Profile

_ENDLESS = 10**6  # steps: the profile ends the script
T = TypeVar("T")


@dataclass(frozen=True)
class Setting:
    """What all measurements share. `few` and `many` are steps of the slowest example, `times` how many the others do
    while it does one."""

    few: int
    many: int
    repeats: int
    cores: float
    times: dict[str, float]

    def steps(self, name: str, count: int) -> int:
        return round(count * self.times[name])


def profile_of(name: str) -> Profile:
    return Profile.from_json(profile(f"{EXAMPLES / name}.py --steps {_ENDLESS}", 1), name)


class Measured:
    """Runs of some jobs with few steps and with many."""

    def __init__(self, names: tuple[str, ...], budget: int, policy: str, setting: Setting) -> None:
        self._names, self._budget, self._policy, self._setting = names, budget, policy, setting
        self._few: list[float] = []
        self._many: list[dict[str, Any]] = []

    def run(self, *, backwards: bool = False) -> None:
        """Both once more."""
        for steps in (self._setting.few, self._setting.many)[:: -1 if backwards else 1]:
            jobs = [
                f"{EXAMPLES / name}.py --steps {self._setting.steps(name, steps)}" for name in self._names
            ]
            summary = run_gpushare(jobs, self._budget, 1, "--policy", self._policy)
            if steps == self._setting.few:
                self._few.append(summary["wall_s"])
            else:
                self._many.append(summary)

    def run_all(self) -> float:
        """`repeats` times, every other time backwards; see `seconds`."""
        for repeat in range(self._setting.repeats):
            self.run(backwards=repeat % 2 == 1)
        return self.seconds

    @property
    def seconds(self) -> float:
        """From `few` to `many` steps."""
        seconds = float(self._middle["wall_s"]) - statistics.median(self._few)
        print(f"{' + '.join(self._names)}, {self._policy}: {seconds:.2f} s", file=sys.stderr, flush=True)
        return seconds

    @property
    def apart_s(self) -> float:
        """The longest of the runs with many steps less the shortest."""
        walls_s = [float(summary["wall_s"]) for summary in self._many]
        return max(walls_s) - min(walls_s)

    @property
    def modes_s(self) -> dict[str, float]:
        """How long the run in the middle was in each mode."""
        return {name: mode["seconds"] for name, mode in self._middle["modes"].items()}

    @property
    def _middle(self) -> dict[str, Any]:
        """Of the runs with many steps the one that took the median time, or the shorter of two."""
        return in_the_middle(self._many, lambda summary: float(summary["wall_s"]))


def in_the_middle(several: Sequence[T], key: Callable[[T], float]) -> T:
    return sorted(several, key=key)[(len(several) - 1) // 2]
