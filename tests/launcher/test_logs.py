"""The directory that keeps what jobs wrote, when it is used again."""

import os
from pathlib import Path

import pytest

from gpushare.errors import UsageError
from gpushare.launcher.logs import Logs, hold


def test_what_a_run_before_has_left_of_others_is_told(tmp_path: Path) -> None:
    assert Logs(tmp_path / "new", ["a"]).earlier == []
    for name in ("waits.tsv", "b.out"):
        (tmp_path / name).write_text("somebody's")
    first = Logs(tmp_path, ["a"])
    first.close()
    assert first.earlier == [] and (tmp_path / "waits.tsv").read_text() == "somebody's"
    for name in ("a.out", "a.alloc", "b.out", "b.err", "b.alloc", "waits.tsv", "notes.txt"):
        (tmp_path / name).write_text("old")
    (tmp_path / "restart-1").mkdir()
    logs = Logs(tmp_path, ["a"])
    logs.close()
    assert logs.earlier == ["b.alloc", "b.err", "b.out", "restart-1"]
    left = {path.name: path.read_text() for path in tmp_path.iterdir() if path.is_file()}
    kept = {name: "old" for name in ("b.out", "b.err", "b.alloc", "notes.txt")}
    assert left == {**kept, "a.out": "", "a.err": "", "host.log": ""}  # of its own jobs nothing that is old


def test_a_directory_is_one_runs_at_a_time(tmp_path: Path) -> None:
    held = hold(tmp_path / "new")
    with pytest.raises(UsageError, match=r"another run that is under way writes its logs to .*new"):
        hold(tmp_path / "new")
    os.close(hold(tmp_path / "other"))
    os.close(held)
    os.close(hold(tmp_path / "new"))


def test_a_directory_that_can_not_be_made_is_told() -> None:
    with pytest.raises(UsageError, match="the log directory /proc/none can't be written to"):
        hold(Path("/proc/none"))
