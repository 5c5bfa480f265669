"""Where the threads of a process that does not end are, in words of its own.

gpushare's host, and the programs of the check, write it to their stderr when SIGQUIT comes (`faulthandler`).
"""

import contextlib
import os
import signal
import time
from pathlib import Path

WRITTEN_S = 1.0  # within which it is written


def ask(*pids: int) -> None:
    """Ask each process of these trees that can tell; any other would die of the signal."""
    able = [one for pid in pids for one in (pid, *descendants(pid)) if _catches(one)]
    for one in able:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGQUIT)
    if able:
        time.sleep(WRITTEN_S)


def descendants(pid: int) -> list[int]:
    """Of all generations, in sessions of their own too; by /proc, since psutil may be missing."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found[1:]


def _catches(pid: int) -> bool:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (signal.SIGQUIT - 1) & 1)
    return False
