"""Why jobs waited: one record for each wait that is over, written by `shim/src/decisions.h`; but of waits before a job
begins (`scheduling.admission`), which the host tells."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_RECORD = struct.Struct("<QQQQIBBBB")
_NOT_PREDICTED = 2**64 - 1

# By the number that the shim has for it: a word for a file, and what it means.
REASONS = (
    ("", ""),
    ("behind", "a job that asked earlier, or goes first, came first"),
    ("turn", "the jobs took turns"),
    ("shift", "its planned time shift was not over"),
    ("claims", "no order was left in which all open iterations could end"),
    ("memory-first", "who waits for memory in an iteration comes before doors"),
    ("measured", "it or another was measured alone"),
    ("residues", "it did not fit beside what the others keep"),
    ("fork", "another job started a process"),
    ("overrun", "another job needed more than it claimed"),
    ("set-aside", "fewer jobs at once did more: it waited until another one ended, or for its turn"),
    ("copied-out", "its memory had been copied out for others, and had no room to come back"),
    (
        "queued",
        "before it began: by its saved profile it did not fit beside jobs that had begun, or fewer were faster",
    ),
)
QUEUED = len(REASONS) - 1  # the shim has none of that number


@dataclass(frozen=True, slots=True)
class Wait:
    """One wait, before the job began, at a door or (`bytes` > 0) for memory.

    Accounts are 1 and up in the order of the jobs; `for_account` 0 is nobody in particular. `reason` is an index of
    `REASONS`: what it waited for most of the time. `predicted_ns` is what the curves forecast when it began, None
    where they could not. Times on CLOCK_MONOTONIC.
    """

    asked_ns: int
    waited_ns: int
    predicted_ns: int | None
    bytes: int
    iteration: int
    account: int
    for_account: int
    reason: int
    refused: bool

    @property
    def place(self) -> str:
        """Where the job waited."""
        return "queue" if self.reason == QUEUED else "memory" if self.bytes else "door"


def waits(records: bytes) -> Iterator[Wait]:
    """All waits, in the order in which they ended; half a record at the end is dropped."""
    whole = len(records) - len(records) % _RECORD.size
    for fields in _RECORD.iter_unpack(records[:whole]):
        asked, waited, predicted, size, iteration, account, by, reason, refused = fields
        forecast = None if predicted == _NOT_PREDICTED else predicted
        yield Wait(asked, waited, forecast, size, iteration, account, by, reason, bool(refused))
