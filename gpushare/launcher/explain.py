"""The waits of a run (`--explain`): written by the host to a nameless file, kept for reading in the log directory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from gpushare.telemetry.decisions import QUEUED, REASONS, Wait, waits

NAME = "waits.tsv"
_COLUMNS = "asked_s\twaited_s\tforecast_s\tjob\titeration\tat\tfor\treason\trefused"


def begin() -> BinaryIO:
    """A file for the host's records. It is gone when it is closed."""
    return tempfile.TemporaryFile(buffering=0)


def read(file: BinaryIO) -> list[Wait]:
    """What was recorded, also by a host that died."""
    file.seek(0)
    return list(waits(file.read()))


def queued(message: dict[str, Any]) -> Wait:
    """What the host says of a job that waited before it began."""
    return Wait(
        message["asked_ns"],
        message["waited_ns"],
        predicted_ns=None,
        bytes=0,
        iteration=0,
        account=message["account"],
        for_account=message["for_account"],
        reason=QUEUED,
        refused=False,
    )


def write(path: Path, found: Iterable[Wait], names: Sequence[str], start_ns: int) -> None:
    """One line for each wait. Times in seconds, `asked_s` since the run began.

    :raises OSError: the file can't be written.
    """
    lines = [_COLUMNS, *(_line(wait, names, start_ns) for wait in found)]
    # A job has its name from its script's, whose bytes may be no UTF-8.
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogateescape")


def _line(wait: Wait, names: Sequence[str], start_ns: int) -> str:
    forecast = "" if wait.predicted_ns is None else f"{wait.predicted_ns / 1e9:.6f}"
    place = f"memory:{wait.bytes}" if wait.bytes else wait.place
    fields = (
        f"{(wait.asked_ns - start_ns) / 1e9:.6f}",
        f"{wait.waited_ns / 1e9:.6f}",
        forecast,
        name_of(wait.account, names),
        str(wait.iteration),
        place,
        name_of(wait.for_account, names),
        REASONS[wait.reason][0],
        "yes" if wait.refused else "",
    )
    return "\t".join(fields)


def name_of(account: int, names: Sequence[str]) -> str:
    """The job's name; empty for no job."""
    return names[account - 1] if 0 < account <= len(names) else ""
