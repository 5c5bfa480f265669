"""What is told of a run that ended wrongly: the ends of its logs."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent.parent / "scripts"))
import last_words


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "restart-1").mkdir()
    (tmp_path / "a.out").write_text("what it prints")
    (tmp_path / "a.err").write_text("Traceback:\n  here\nValueError: the moon fell\n")
    (tmp_path / "b.err").write_text("")
    (tmp_path / "host.log").write_text("a warning\n")
    (tmp_path / "restart-1" / "b.err").write_text("again\n")
    return tmp_path


def test_in_one_line_who_says_much_leaves_room_for_the_others(logs: Path) -> None:
    line = last_words.of_run(logs, "gpushare: " + "much " * 200, most=160)
    assert "ValueError: the moon fell" in line and "a warning" in line and "again" in line
    assert "much much" in line[:20] and "\n" not in line and len(line) < 180
    assert last_words.of_run(logs / "none", "") == ""


def test_in_full_each_has_its_name_and_its_end(logs: Path) -> None:
    told = last_words.in_full(logs, "")
    assert "--- a.err\nTraceback:\n  here\nValueError" in told and "--- restart-1/b.err\nagain" in told
    assert "--- b.err" not in told and "what it prints" not in told
    assert told.index("--- a.err") < told.index("--- host.log"), "the stacks of one that hangs come last"
    assert last_words.end_of(logs / "a.err", 8) == "on fell\n"


def test_runs_are_found_whose_hosts_have_told_where_they_are(logs: Path) -> None:
    (logs / "restart-1" / "host.log").write_text("Stack (most recent call first):\n")
    assert last_words.runs_with_stacks(logs) == [logs / "restart-1"]
