"""Allocation logs: a line of JSON, then a record for each allocation, free and iteration, in order.

The records are written by `shim/src/allocation_log.cpp`. A job's account is one more than its place in the line.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpushare.errors import UsageError

VERSION = 2
ALLOCATED, FREED, OPENED, CLOSED = 1, 2, 3, 4
KINDS = ("", "persistent", "activation", "temporary", "passing")
_RECORD = struct.Struct("<QQQQIBBBx")


@dataclass(frozen=True, slots=True)
class Entry:
    """One record. `what` is ALLOCATED, FREED, OPENED or CLOSED (an iteration); `bytes` as the script asked.

    `kind` is an index of `KINDS`: in the log of a profiled iteration what the block turned out to be, else what
    the profile lets expect ("passing": not to outlive its iteration).
    """

    time_ns: int
    address: int
    bytes: int
    stream: int
    iteration: int
    account: int
    what: int
    kind: int


def header(jobs: Sequence[tuple[str, str]], **about: object) -> bytes:
    """First line of a log of jobs, each a name and a command."""
    named = [{"name": name, "command": command} for name, command in jobs]
    return json.dumps({"gpushare_allocation_log": VERSION, "jobs": named, **about}).encode() + b"\n"


class AllocationLog:
    """A log that was written.

    :raises UsageError: the file is not a log that this version reads.
    """

    def __init__(self, path: Path) -> None:
        line, _, self._records = path.read_bytes().partition(b"\n")
        try:
            self.about: dict[str, Any] = json.loads(line)
            version = self.about["gpushare_allocation_log"]
        except (ValueError, KeyError, TypeError):
            raise UsageError(f"{path} is not an allocation log of gpushare") from None
        if version != VERSION:
            raise UsageError(f"{path} is of version {version}, but this gpushare reads version {VERSION}")

    def __len__(self) -> int:
        return len(self._records) // _RECORD.size

    def __iter__(self) -> Iterator[Entry]:
        whole = memoryview(self._records)[: len(self) * _RECORD.size]
        return (Entry(*record) for record in _RECORD.iter_unpack(whole))
