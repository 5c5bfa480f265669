"""What is the same for all rows, and what rows share: jobs alone are measured once."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from . import workloads
from .row import NotMeasured, Row, Task
from .running import Ran, Runner
from .timing import step_s

Found = TypeVar("Found")
WATCHED_S = 5.0  # of the steps of a job alone, on a GPU: NVML sees no shorter time


@dataclass(frozen=True)
class Settings:
    """`few` steps of `many` do not count; `sizes` are more options for each workload. Jobs that run together do as many
    more as last `window_s` alone, each by its own step."""

    few: int
    many: int
    rounds: int
    budget_bytes: int
    batch_budget_bytes: int
    batch_grain: int
    sizes: str
    window_s: float = 0.0


@dataclass(frozen=True)
class Solo:
    """A job by itself, under gpushare and in plain python. Seconds of a step; bytes at most.

    `residue_bytes` is what it keeps between iterations, `native_bytes` what torch's own allocator reserved: None if
    that is not known, as on a CPU. `busy`: the part of the time in which the device had a kernel, in plain python, or
    why that is not known.
    """

    step_s: float
    plain_step_s: float
    held_bytes: int
    residue_bytes: int | None
    native_bytes: int | None
    allocations: bytes | None
    busy: float | str = "not watched"


@dataclass
class Bench:
    """Runs jobs, and keeps what is known of each by itself."""

    runner: Runner
    settings: Settings
    _known: dict[object, tuple[Any, list[str]]] = field(default_factory=dict)

    @property
    def on_gpu(self) -> bool:
        return self.runner.device != "cpu"

    def target(self, row: Row, claim: str, holds: bool) -> None:
        """What is to be reached on a GPU; elsewhere its figure alone is told."""
        if self.on_gpu:
            row.claims[claim] = holds

    def job(self, name: str, steps: int, more: str = "") -> str:
        """A command line; of options that are given twice the last counts."""
        words = [workloads.command(name, self.settings.sizes), "--device", self.runner.device]
        return " ".join([*words, "--steps", str(steps), more]).strip()

    def lasting(self, name: str, solo: Solo, more: str = "") -> str:
        """The command line of a job that is judged beside another one."""
        steps = self.settings.few + math.ceil(self.settings.window_s / solo.step_s)
        return self.job(name, max(self.settings.many, steps), more)

    def solo(self, name: str, more: str = "") -> Solo:
        """A job by itself, measured once for all rows."""
        return self.once(("solo", name, more), lambda: self._solo(name, more))

    def learn_solo(self, name: str, shared: Ran, plain: Ran) -> None:
        """The same from runs of the job by itself that a row made anyway, if they tell all."""
        solo = self._solo_of(shared, plain)
        if not self.on_gpu or not isinstance(solo.busy, str):
            self._known.setdefault(("solo", name, ""), (solo, list(self.runner.lines)))

    def once(self, key: object, measure: Callable[[], Found]) -> Found:
        """What `measure` returned when it was first asked for `key`, and its commands; what it raises is not kept."""
        lines = self.runner.lines
        if key in self._known:
            lines += self._known[key][1]
        else:
            before = len(lines)
            self._known[key] = measure(), lines[before:]
        found: Found = self._known[key][0]
        return found

    def fill(self, task: Task, row: Row, write: Callable[[], object]) -> None:
        """Measure a row, with the commands that it took; those of what was known before are among them. What is known
        of it is written before each command, in which all may end."""

        def note() -> None:
            row.commands = list(dict.fromkeys(self.runner.lines))
            write()

        self.runner.lines.clear()
        self.runner.before = note
        task.fill(row)
        note()

    def _solo(self, name: str, more: str) -> Solo:
        settings = self.settings
        shared = self.runner.gpushare([self.job(name, settings.many, more)], settings.budget_bytes)
        watched = settings.few + math.ceil(WATCHED_S / step_s(shared.ends_s[0], settings.few))
        steps = max(settings.many, watched) if self.on_gpu else settings.many
        return self._solo_of(shared, self.runner.python([self.job(name, steps, more)]))

    def _solo_of(self, shared: Ran, plain: Ran) -> Solo:
        few, ends = self.settings.few, plain.ends_s[0]
        return Solo(
            step_s(shared.ends_s[0], few),
            step_s(ends, few),
            held_bytes(shared),
            shared.residue_bytes,
            plain.native_bytes[0] or None,
            shared.allocations,
            plain.device.mean(ends[few - 1], ends[-1]),
        )


def held_bytes(ran: Ran) -> int:
    """What the only job of a run held at most.

    :raises NotMeasured: nothing.
    """
    held: int = ran.summary["jobs"][0]["held_peak_bytes"]
    if not held:
        raise NotMeasured("the job held no memory of the pool")
    return held
