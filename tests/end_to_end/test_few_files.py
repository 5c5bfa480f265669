"""Many jobs where few files may be open at once."""

import resource
import sys
from pathlib import Path

from conftest import console, limited

ASKS = """
import resource
print(resource.getrlimit(resource.RLIMIT_NOFILE))
files = [open(__file__) for _ in range(9)]
"""


def test_jobs_see_the_limit_that_there_was_and_open_their_files(tmp_path: Path) -> None:
    (tmp_path / "asks.py").write_text(ASKS)
    limits = (64, 1000)
    alone = limited([sys.executable, "asks.py"], tmp_path, resource.RLIMIT_NOFILE, limits)
    done = limited(
        [*console(), "run", *["asks.py"] * 8, "--log-dir", "logs"], tmp_path, resource.RLIMIT_NOFILE, limits
    )
    assert done.returncode == 0, done.stderr
    outputs = [path.read_text() for path in (tmp_path / "logs").glob("*.out")]
    assert outputs == [alone.stdout] * 8


def test_a_limit_that_can_not_be_raised_is_told(tmp_path: Path) -> None:
    (tmp_path / "asks.py").write_text(ASKS)
    done = limited([*console(), "run", *["asks.py"] * 8], tmp_path, resource.RLIMIT_NOFILE, (64, 64))
    assert done.returncode == 2 and done.stdout == "", done.stdout
    assert "8 jobs need 96 open files at least, and no more than 64 are allowed" in done.stderr
