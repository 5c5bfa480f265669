"""Jobs that come and go on real streams, in a budget that is too small for all; kernels look for others' bytes."""

import re
import time
from collections.abc import Iterator

from . import build, programs
from .processes import NO_TIME, started
from .runner import Row

STATEMENT = "on real streams no read finds bytes of another owner, while pages pass between jobs"
DRIVER = "libcuda.so.1"
SECONDS = (5, 15)  # of each run: a short one first, so that there is one
# For the driver's start, and for the device to finish what was issued. No run begins without this beside its seconds,
# so one that is still there then hangs, and was not cut off by the end of its part.
GRACE_S = 20.0
COUNT = len(SECONDS)


def run(deadline: float, why: str = "", driver: str = DRIVER) -> Iterator[Row]:
    """A row for each run; the last takes what time there is, up to its own."""
    for number, seconds in enumerate(SECONDS, 1):
        row = Row(f"stress_{number}", STATEMENT, why=why)
        left = int(min(seconds, deadline - time.monotonic() - GRACE_S))
        if not why and left < 1:
            row.why = NO_TIME
        if not row.why:
            _run(row, driver, left, deadline)
        yield row


def _run(row: Row, driver: str, seconds: int, deadline: float) -> None:
    begin = time.monotonic()
    ended = started(
        [str(build.stress()), driver, str(seconds)], seconds + GRACE_S, deadline, programs.python_path()
    )
    row.log = ended.in_full
    told = ended.output.decode(errors="replace")
    row.figures |= {name: int(count) for name, count in re.findall(r"^(\w+) (\d+)$", told, re.MULTILINE)}
    row.seconds = round(time.monotonic() - begin, 2)
    if ended.code == 3:  # the driver refused something
        row.why = ended.last_words
        return
    if ended.code is None:
        row.claims[f"it ends within {ended.limit_s:.0f} s"] = False
    else:
        words = f"{told.strip().splitlines()[-1:]} {ended.last_words}" if ended.code else ""
        row.claims[f"no read is wrong{words and '; its last words: ' + words}"] = ended.code == 0
    row.verdict = "true" if all(row.claims.values()) else "false"
