"""scripts/bench/threads.py: what it computes, and that every case of it runs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent.parent / "scripts" / "bench"))
import threads
from threads import pace, past_the_profile, progress


@pytest.mark.parametrize(("now_s", "ended"), [(1, 1), (1.5, 1.5), (2, 2), (3, 2.5), (4, 3), (9, 3)])
def test_progress_lies_between_two_ends_in_proportion(now_s: float, ended: float) -> None:
    assert progress([1, 2, 4], now_s) == ended


def test_pace_counts_while_all_run_past_the_profile() -> None:
    assert pace([[1, 2, 3, 4, 5, 6]]) == 1
    # From 6, when the second's third has ended, to 9, when the first ends: 3 and 1.5 iterations.
    assert pace([[1, 2, 3, 4, 5, 6, 7, 8, 9], [2, 4, 6, 8, 10, 12]]) == 1.5
    assert pace([[1, 2, 3, 4], [5, 6, 7, 8]]) is None


def test_counts_begin_past_the_profile() -> None:
    assert past_the_profile([100, 200, 300, 310, 330]) == 15


def test_every_case_is_measured(tmp_path: Path) -> None:
    options = ["--steps", "4", "--rounds", "1", "--budgets", "2.2", "--options", "--batch-size 32 --depth 16"]
    command = [sys.executable, threads.__file__, *options, "--name", tmp_path / "threads"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stdout + done.stderr
    runs = json.loads((tmp_path / "threads.json").read_text())["figures"]["runs"]
    assert len(runs) == 6
    for name, (run,) in runs.items():
        assert run["took_s"] > 0 and run["lines"] == (4 if name == threads.SERIAL else 8)
    assert len((tmp_path / "threads.md").read_text().splitlines()) > len(runs)
