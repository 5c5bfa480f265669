"""Kinds of iterations of a job: training and evaluation, generator and discriminator, a smaller last batch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

_STEPS, _ALLOCATIONS = 128, 1 << 20  # as the shim has them (GS_KIND_STEPS)


@dataclass(frozen=True)
class IterationKind:
    """One of them, its curve cut into steps.

    Step i begins at allocation `ordinals[i]` of the `allocations`, `time_s[i]` seconds after the iteration's start, and
    holds `held_bytes[i]` at most. `seen` iterations were of it; `followed_by[k]` of these were followed by one of the
    k-th kind.
    """

    ordinals: tuple[int, ...]
    held_bytes: tuple[int, ...]
    time_s: tuple[float, ...]
    allocations: int
    residue_bytes: int
    iteration_s: float
    seen: int
    followed_by: tuple[int, ...]

    @staticmethod
    def from_json(content: dict[str, Any]) -> IterationKind:
        """:raises TypeError: a field is missing, or is none."""
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in content.items()}
        return IterationKind(**fields)

    def at_pace(self, factor: float) -> IterationKind:
        """With all times so many times as long."""
        times_s = tuple(t * factor for t in self.time_s)
        return replace(self, time_s=times_s, iteration_s=self.iteration_s * factor)

    def what_is_wrong(self) -> str | None:
        """What no measured kind can have; None if there is nothing of that sort."""
        numbers = (*self.ordinals, *self.held_bytes, *self.followed_by)
        if not all(_is_count(n) for n in (*numbers, self.allocations, self.residue_bytes, self.seen)):
            return "a kind's sizes and counts must be numbers"
        if not all(isinstance(t, int | float) and t >= 0 for t in (*self.time_s, self.iteration_s)):
            return "a kind's times must be numbers of seconds"
        lengths = {len(self.ordinals), len(self.held_bytes), len(self.time_s)}
        if len(lengths) != 1 or not 0 < len(self.ordinals) <= _STEPS:
            return "a kind's steps do not belong together"
        in_order = all(a < b for a, b in pairwise(self.ordinals)) and self.ordinals[0] == 0
        if not in_order or not self.ordinals[-1] < self.allocations <= _ALLOCATIONS:
            return "a kind's steps are not in order"
        if any(later < earlier for earlier, later in pairwise(self.time_s)):
            return "a kind's times go back"
        return None


def _is_count(number: object) -> bool:
    return isinstance(number, int) and 0 <= number < 1 << 63
