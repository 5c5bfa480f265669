"""Programs of the tests that compute on a GPU, run one after the other."""

import math
import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from .processes import NO_TIME, started
from .runner import Row

ROOT = Path(__file__).parent.parent.parent
SITE = ROOT / "build" / "gpu-check" / "site"
SHIM = ROOT / "gpushare" / "_shim" / "libgpushare.so"
TENSORS = ROOT / "tests" / "framework" / "cuda" / "tensors.py"
LEAST_S = 1.0
PROGRAMS = (
    (
        "bridge",
        "with the bridge as torch's allocator, jobs at once compute what each computes alone; graphs replay",
        [str(TENSORS), str(SHIM)],
        {},
    ),
    (
        "plain_allocator",
        "the same without a compiler, with torch's plain pluggable allocator, but for graphs",
        [str(TENSORS), str(SHIM), "plain"],
        {"CXX": "no-such-compiler"},
    ),
)
COUNT = len(PROGRAMS)


def run(deadline: float, why: str = "") -> Iterator[Row]:
    """A row for each; what has no time left is not checked, and nothing is if there is a `why`."""
    for name, statement, command, environment in PROGRAMS:
        row = Row(name, statement, why=why)
        yield row if why else run_row(row, [sys.executable, *command], environment, deadline)


def python_path() -> str:
    """The tree's package first, then what the caller has set."""
    return os.pathsep.join(filter(None, (str(SITE), os.environ.get("PYTHONPATH"))))


def run_row(row: Row, command: list[str], environment: Mapping[str, str], deadline: float) -> Row:
    """The row, true if the command ends with exit code 0."""
    if deadline - time.monotonic() < LEAST_S:
        row.why = NO_TIME
        return row
    begin = time.monotonic()
    ended = started(command, math.inf, deadline, python_path(), environment)
    said = ended.output.decode(errors="replace") + ended.errors
    words = " | ".join(said.split("\n")[-12:]).strip(" |")[-600:]
    row.log = ended.in_full
    if ended.code is None:
        row.why = f"no end within {ended.limit_s:.0f} s; its last words: {words or 'none'}"
    else:
        row.claims[f"exit code {ended.code}; its last words: {words}"] = ended.code == 0
        row.verdict = "false" if ended.code else "true"
    row.seconds = round(time.monotonic() - begin, 2)
    return row
