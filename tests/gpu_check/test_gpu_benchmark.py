"""The benchmark as a part of the GPU check: how its rows are told, with stand-ins for it."""

import json
import os
import sys
import time
from pathlib import Path

import pytest

# Before scripts/bench, which has a gpu.py.
sys.path.insert(0, str(Path(__file__).parent.parent.parent / "scripts"))
from gpu import bench, programs
from gpu.bench import Benchmark
from gpu.runner import Row

ROW = {
    "kind": "k",
    "name": "",
    "what": "w",
    "why": "",
    "claims": {},
    "figures": {},
    "notes": [],
    "commands": [],
}
FAKE = """
import json, os, sys, time
if "--list" in sys.argv:
    print("k: one\\nk: two\\nk: three")
    sys.exit()
to = sys.argv[sys.argv.index("--name") + 1] + ".json"
assert float(sys.argv[sys.argv.index("--limit") + 1]) > 0
def write(rows):
    open(to + "x", "w").write(json.dumps({{"figures": rows}}))
    os.replace(to + "x", to)
rows = {rows}
{then}
"""


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The package is the one that is installed: the tree may have no shim."""
    monkeypatch.setattr(programs, "SITE", tmp_path)


def row(name: str, **more: object) -> dict[str, object]:
    return {**ROW, "name": name, "seconds": 1.5, **more}


def told(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    rows: list[dict[str, object]],
    then: str,
    limit_s: float = 60,
) -> list[Row]:
    script = folder / "fake.py"
    script.write_text(FAKE.format(rows=repr(rows), then=then))
    monkeypatch.setattr(bench, "SCRIPT", script)
    benchmark = Benchmark(folder / "out")
    assert len(benchmark.names) == 3
    return list(benchmark.rows(time.monotonic() + limit_s))


def test_rows_as_they_come(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = [
        row("one", figures={"stp": 1.2}, commands=["gpushare run x"], claims={"equal": True}),
        row("two", claims={"equal": False}),
        row("three", why="no time left"),
    ]
    later = [{**one, "why": bench.NOT_YET} for one in rows]
    then = f"write({later!r})\ntime.sleep(0.7)\nwrite(rows[:1] + {later[1:]!r})\ntime.sleep(0.7)\nwrite(rows)"
    one, two, three = told(monkeypatch, tmp_path, rows, then)
    assert (one.name, one.verdict, one.statement, one.seconds) == ("k: one", "true", "w", 1.5)
    assert one.figures == {"stp": 1.2, "commands": ["gpushare run x"]}
    assert (two.verdict, three.verdict, three.why) == ("false", "not checked", "no time left")


def test_an_end_before_its_time_leaves_what_was_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    then = "write(rows)\nsys.exit('the moon fell down')"
    one, two, three = told(monkeypatch, tmp_path, [row("one")], then)
    assert one.verdict == "true"
    for late in (two, three):
        assert late.verdict == "not checked" and "the moon fell down" in late.why


def test_what_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bench, "GRACE_S", 1.0)
    pid = tmp_path / "pid"
    then = f"write(rows)\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(99)"
    one, two, _ = told(monkeypatch, tmp_path, [row("one")], then, limit_s=6)
    assert (one.verdict, two.verdict) == ("true", "not checked")
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_results_of_an_earlier_run_are_not_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "gpu.json").write_text(json.dumps({"figures": [row("one")]}))
    assert {one.verdict for one in told(monkeypatch, tmp_path, [], "sys.exit('at once')")} == {"not checked"}


def test_without_a_shim_nothing_starts(tmp_path: Path) -> None:
    found = list(Benchmark(tmp_path, device="cpu").run(time.monotonic() + 60, "the shim was not built"))
    assert {one.why for one in found} == {"the shim was not built"}


def test_the_benchmark_itself_is_told(tmp_path: Path) -> None:
    benchmark = Benchmark(tmp_path / "out", device="cpu")
    found = list(benchmark.rows(time.monotonic() + 30))
    assert [one.name for one in found] == benchmark.names and len(found) > 10
    assert {one.why for one in found} == {"no time left"}
    assert (tmp_path / "out" / "gpu.md").exists()


def test_its_rows_are_asked_for_no_longer_than_there_is_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(50)\n")
    monkeypatch.setattr(bench, "SCRIPT", tmp_path / "slow.py")
    begin = time.monotonic()
    (one,) = Benchmark(tmp_path, until=begin + 2).rows(begin + 2)
    assert "did not name its rows within 2 s" in one.why and time.monotonic() - begin < 20


def test_a_benchmark_that_can_not_begin_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bench, "SCRIPT", tmp_path / "none.py")
    benchmark = Benchmark(tmp_path)
    (one,) = benchmark.rows(time.monotonic() + 60)
    assert len(benchmark.names) == 1 and "could not name its rows" in one.why
