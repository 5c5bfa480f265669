"""Kinds of iterations of a job: training and evaluation, generator and discriminator, a smaller last batch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from typing import Any

MOST_KINDS = 8  # as the shim has them (GS_MOST_KINDS, GS_KIND_STEPS)
_STEPS, _ALLOCATIONS = 128, 1 << 20


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

    def after(self, before: IterationKind) -> IterationKind:
        """What is known after a run that was given `before`, this one being told by it: its counts are that run's."""
        latest = self if self.seen else before
        followed = zip_longest(self.followed_by, before.followed_by, fillvalue=0)
        return replace(
            latest, seen=self.seen + before.seen, followed_by=tuple(here + there for here, there in followed)
        )

    def what_is_wrong(self) -> str | None:
        """What no measured kind can have; None if there is nothing of that sort.

        :raises TypeError: a field is of another type.
        """
        numbers = (*self.ordinals, *self.held_bytes, *self.followed_by)
        if not all(_is_count(n) for n in (*numbers, self.allocations, self.residue_bytes, self.seen)):
            return "a kind's sizes and counts must be numbers"
        if not all(is_time(t) for t in (*self.time_s, self.iteration_s)):
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


def is_time(seconds: object) -> bool:
    """Whether it can be one, or how long something took."""
    return isinstance(seconds, int | float) and 0 <= seconds < 1e9


def _is_count(number: object) -> bool:
    return isinstance(number, int) and 0 <= number < 1 << 48
