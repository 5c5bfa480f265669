"""The directory that keeps what jobs wrote, when it is used again."""

from pathlib import Path

from gpushare.launcher.logs import Logs


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
