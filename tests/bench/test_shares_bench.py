"""scripts/bench/shares.py, outside.py and what goes with them: what they compute, and that every part of them runs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent.parent.parent / "scripts" / "bench"))
import common
import shares
from outside import Sample, Watched, scheduler_share

BENCH = Path(common.__file__).parent


def sample(at_s: float, cpu_s: float = 0.0, *, profiled: bool = True, over: bool = False) -> Sample:
    return Sample(at_s, cpu_s, (0, 0), profiled, over, 0, 0.0)


def run(script: str, *options: str) -> str:
    command = [sys.executable, str(BENCH / script), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_steady_state_is_while_all_have_a_profile_and_none_has_ended() -> None:
    watched = Watched(2)
    watched.samples = [
        sample(0, 0.5, profiled=False),
        sample(1, 0.6),
        sample(3, 0.7),
        sample(7, 0.8),
        sample(8, 2, over=True),
    ]
    assert [s.at_s for s in watched.steady()] == [1, 3, 7]
    assert [s.at_s for s in watched.steady(2)] == [3, 7]
    assert scheduler_share(watched.steady()) == pytest.approx(0.2 / 6)
    assert scheduler_share(watched.steady(5)) is None
    watched.samples = []
    assert watched.steady() == []


def test_the_worst_moment_counts_once_enough_has_been_done() -> None:
    moments = [[0, 1], [1, 3], [3, 5], [8, 9]]
    assert shares.worst(moments, 1) == 3
    assert shares.worst(moments, 4) == 5 / 3
    assert shares.worst(moments, 8) == 9 / 8
    assert shares.worst(moments, 9) is None
    assert shares.apart([0, 4]) == float("inf")


def test_results_name_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "RESULTS", tmp_path)
    told = common.save("some", "command", {}, [["a"], [1]])
    assert f"- commit: {common.commit()}" in told.splitlines()
    assert json.loads((tmp_path / "some.json").read_text())["commit"] == common.commit()


def test_every_benchmark_with_results_writes_them_by_what_names_the_commit() -> None:
    names = {path.stem for path in common.RESULTS.glob("*.md")}
    scripts = [path for path in BENCH.glob("*.py") if path.stem in names]
    assert {"informed", "leases", "planned_starts", "simulation"} <= {path.stem for path in scripts}
    for path in scripts:
        text = path.read_text()
        assert any(f"{call}(" in text for call in ("write", "save", "conclude")), path


@pytest.mark.parametrize(
    ("script", "options", "lines"),
    [
        ("over_greedy.py", ("--measured", "", "--jobs", "2,4", "--peaks", "1.6"), 7),
        ("shares.py", ("--steps", "0", "--simulated", "8", "--seeds", "2", "--policies", "zico,temporal"), 9),
        ("informed.py", ("--seeds", "1", "--iterations", "1,2", "--factors", "1.3", "--begins", "0.9"), 17),
    ],
)
def test_the_simulated_ones_run(script: str, options: tuple[str, ...], lines: int) -> None:
    assert len(run(script, *options, "--print").splitlines()) == lines


def test_few_of_the_twenty_jobs(tmp_path: Path) -> None:
    name = str(tmp_path / "few")
    run("twenty_jobs.py", "--jobs", "3", "--steps", "12", "--policies", "auto", "--name", name)
    (found,) = json.loads(Path(f"{name}.json").read_text())["figures"]
    assert found["statuses"] == ["ok"] and found["equal"] == [True] * 3
    assert found["held_peak_bytes"] <= found["budget_bytes"]
    assert found["longest_wait"]["reason"]


def test_shares_of_two_real_jobs(tmp_path: Path) -> None:
    name = str(tmp_path / "two")
    options = (
        "--jobs",
        "2",
        "--steps",
        "12",
        "--policies",
        "zico",
        "--simulated",
        "4",
        "--seeds",
        "1",
        "--few",
        "1",
    )
    run("shares.py", *options, "--name", name)
    real: dict[str, Any] = json.loads(Path(f"{name}.json").read_text())["figures"]["real"][0]
    assert len(real["done"]) == 2 and real["apart"] >= 1
