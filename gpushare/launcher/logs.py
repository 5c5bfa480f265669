"""The directory that keeps what the jobs wrote, byte for byte."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from gpushare import places
from gpushare.errors import UsageError
from gpushare.launcher import explain


def run_directory() -> Path:
    """A new name under `$XDG_STATE_HOME/gpushare`."""
    state = places.base("XDG_STATE_HOME", ".local/state")
    now = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    return state / "gpushare" / f"run-{now}-{os.getpid()}"


_HOST = "host.log"
_KINDS = (".out", ".err", ".alloc")


def _others(directory: Path, names: Sequence[str]) -> list[str]:
    """What a run that wrote its logs to the directory has left there of other jobs; nothing where none did."""
    own = {f"{name}{kind}" for name in names for kind in _KINDS}
    try:
        found = [entry.name for entry in os.scandir(directory)]
    except OSError:
        return []
    if _HOST not in found:
        return []
    return sorted(
        name for name in found if (name.endswith(_KINDS) or name.startswith("restart-")) and name not in own
    )


def hold(directory: Path) -> int:
    """Keep every other run from writing its logs there, until this process ends or who gets the descriptor closes it.

    :raises UsageError: another one does, or the directory can't be made.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise _no_logs(directory, error) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise UsageError(
            f"another run that is under way writes its logs to {directory}: give this one another --log-dir, or wait"
        ) from None
    except OSError:  # not every file system has locks
        pass
    return descriptor


def _no_logs(directory: Path, error: OSError) -> UsageError:
    return UsageError(f"the log directory {directory} can't be written to: {error}")


class Logs:
    """Open files NAME.out and NAME.err for each job, and host.log; NAME.alloc for a job that is profiled.

    What a run before has left of jobs of these names is not kept. `earlier`: names of what it has left of others.

    :raises UsageError: the directory can't be made or written to.
    """

    def __init__(self, directory: Path, names: Sequence[str]) -> None:
        self.directory = directory
        self._failed: set[Path] = set()
        self._profiled: dict[Path, int] = {}  # length of what the file begins with
        self.earlier = _others(directory, names)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            host = directory / _HOST
            again = host.is_file()
            host.write_bytes(b"")  # an earlier run's last words are not this one's
            for name in (*(f"{name}.alloc" for name in names), explain.NAME) if again else ():
                with contextlib.suppress(OSError):  # this run may write none
                    (directory / name).unlink()
            self.host = host.open("ab", buffering=0)
            self._files: dict[tuple[str, str], BinaryIO] = {
                (name, stream): (directory / f"{name}.{stream}").open("wb", buffering=0)
                for name in names
                for stream in ("out", "err")
            }
        except OSError as error:
            raise _no_logs(directory, error) from None

    @property
    def incomplete(self) -> bool:
        """Whether something that a job wrote is not there."""
        return bool(self._failed)

    def write(self, name: str, stream: str, data: bytes) -> str | None:
        """Append; what went wrong, once per file, if the disk does not take it."""
        path = self.directory / f"{name}.{stream}"
        if path in self._failed:
            return None
        try:
            view = memoryview(data)
            while view:
                view = view[self._files[name, stream].write(view) :]
        except OSError as error:
            self._failed.add(path)
            return f"the log {path} is incomplete from here on: {error.strerror}"
        return None

    def begin_profiled(self, name: str, first_line: bytes) -> int:
        """NAME.alloc, for the allocations of the profiled iteration: a descriptor for the host, the caller's to
        close; -1 if it can't be had."""
        path = self.directory / f"{name}.alloc"
        try:
            path.write_bytes(first_line)
            self._profiled[path] = len(first_line)
            return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        except OSError:
            return -1

    def host_tail(self, lines: int = 5) -> str:
        """The host's last words."""
        try:
            text = (self.directory / "host.log").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def close(self) -> None:
        """Close all files; a log of allocations that has none goes."""
        for path, empty in self._profiled.items():
            with contextlib.suppress(OSError):
                if path.stat().st_size <= empty:
                    path.unlink()
        for file in (self.host, *self._files.values()):
            file.close()
