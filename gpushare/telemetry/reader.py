"""Frozen views of the telemetry memory. Reading costs the jobs nothing: nobody takes a lock."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from typing import NamedTuple

from gpushare.telemetry import layout


@dataclass(frozen=True)
class PoolView:
    """The pool at one moment; names say the units."""

    values: dict[str, int]

    def __getattr__(self, name: str) -> int:
        try:
            values: dict[str, int] = self.__dict__["values"]
            return values[name]
        except KeyError:
            raise AttributeError(name) from None


class JobView(PoolView):
    """One account at one moment."""

    @property
    def phase(self) -> str:
        """What the job is doing, in words."""
        return layout.STATES[min(self.state, len(layout.STATES) - 1)]

    @property
    def mean_shift_s(self) -> float | None:
        """Measured time shift: from another job's start to this one's; None if it never met one."""
        return self.shift_sum_ns / self.shift_count / 1e9 if self.shift_count else None


@dataclass(frozen=True)
class Event:
    """One entry of an account's ring."""

    sequence: int
    time_ns: int
    kind: str
    value: int


class Wake(NamedTuple):
    """Nanoseconds from letting a waiter go to its running again, and from there to its having the GIL."""

    running_ns: int
    gil_ns: int


class Telemetry:
    """The telemetry memory behind a descriptor of `layout.TOTAL_BYTES` bytes."""

    def __init__(self, descriptor: int) -> None:
        self._memory = mmap.mmap(descriptor, layout.TOTAL_BYTES, prot=mmap.PROT_READ)

    def pool(self) -> PoolView:
        """The pool's counters; all zero before the host has started."""
        return PoolView(self._words(0, layout.HEADER))

    def job(self, account: int) -> JobView:
        """An account's counters."""
        return JobView(self._words(layout.HEADER_BYTES + account * layout.SLOT_BYTES, layout.SLOT))

    def events(self, account: int, since: int = 0) -> tuple[list[Event], int]:
        """Events after sequence number `since`, and how many were overwritten before they were read."""
        head = self.job(account).ring_head
        first = max(since, head - layout.RING_ENTRIES)
        events = [e for n in range(first, head) if (e := self._event(account, n))]
        return events, head - since - len(events)

    def wakes(self) -> list[Wake]:
        """The latest wake-ups of all jobs."""
        count = min(self.pool().wakes, layout.WAKE_ENTRIES)
        words = struct.unpack_from(f"<{2 * count}Q", self._memory, layout.WAKES_AT)
        return [Wake(*pair) for pair in zip(words[::2], words[1::2], strict=True)]

    def _event(self, account: int, index: int) -> Event | None:
        ring = layout.HEADER_BYTES + layout.ACCOUNTS * layout.SLOT_BYTES
        at = ring + (account * layout.RING_ENTRIES + index % layout.RING_ENTRIES) * 32
        sequence, time_ns, kind, value = struct.unpack_from("<4Q", self._memory, at)
        if sequence != index + 1 or kind >= len(layout.EVENTS):
            return None
        return Event(sequence, time_ns, layout.EVENTS[kind], value)

    def _words(self, offset: int, names: list[str]) -> dict[str, int]:
        values = struct.unpack_from(f"<{len(names)}Q", self._memory, offset)
        return dict(zip(names, values, strict=True))
