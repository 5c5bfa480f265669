"""`--trace`: every allocation and free of the jobs, in an order in which no address has two owners."""

import json
from collections import Counter
from pathlib import Path

import pytest
from conftest import Run

from gpushare.errors import UsageError
from gpushare.telemetry.allocation_log import ALLOCATED, CLOSED, FREED, KINDS, OPENED, AllocationLog


@pytest.mark.usefixtures("train")
def test_two_jobs(gpushare: Run, tmp_path: Path) -> None:
    done = gpushare("run", "train.py 6", "train.py 9", "--trace", "t.log", "--summary", "s.json")
    assert done.returncode == 0, done.stderr
    log = AllocationLog(tmp_path / "t.log")
    assert [job["command"] for job in log.about["jobs"]] == ["train.py 6", "train.py 9"]
    summary = json.loads((tmp_path / "s.json").read_text())
    live: dict[int, tuple[int, int]] = {}
    total, peak = Counter[int](), Counter[int]()
    iterations = Counter[tuple[int, int]]()
    expected = Counter[str]()
    before = 0
    for e in log:
        assert e.time_ns >= before
        before = e.time_ns
        if e.what == ALLOCATED:
            assert e.address not in live
            live[e.address] = (e.account, e.bytes)
            expected[KINDS[e.kind]] += 1
            total[e.account] += e.bytes
            peak[e.account] = max(peak[e.account], total[e.account])
        elif e.what == FREED:
            account, size = live.pop(e.address)
            total[account] -= size
        else:
            assert e.what in (OPENED, CLOSED)
            iterations[e.account, e.what] += 1
    for account, job in enumerate(summary["jobs"], start=1):
        # The last iteration has no end of its own: nothing is allocated after it.
        assert job["iterations"] <= iterations[account, OPENED] <= job["iterations"] + 1
        # Before the profile nothing is expected; after it each allocation is one thing or the other.
        assert set(expected) == {"", "persistent", "passing"}
        # Small blocks count as asked in the log, and in their size class in the shim.
        assert 0.8 * job["live_peak_bytes"] <= peak[account] <= job["live_peak_bytes"]


@pytest.mark.usefixtures("train")
def test_a_profile(gpushare: Run, tmp_path: Path) -> None:
    done = gpushare("profile", "--trace", "t.log", "train.py", "50")
    assert done.returncode == 0, done.stderr
    assert any(e.what == CLOSED for e in AllocationLog(tmp_path / "t.log"))


@pytest.mark.usefixtures("train")
def test_the_profiled_iteration_is_logged(gpushare: Run, tmp_path: Path) -> None:
    """Without --trace too, with the kinds that its blocks turned out to have; once there is a profile no more."""
    done = gpushare("run", "train.py 6", "train.py 9", "--log-dir", "first", "--summary", "s.json")
    assert done.returncode == 0, done.stderr
    job = json.loads((tmp_path / "s.json").read_text())["jobs"][1]
    log = list(AllocationLog(tmp_path / "first" / "train-2.alloc"))
    assert [log[0].what, log[-1].what] == [OPENED, CLOSED]
    assert {e.account for e in log} == {2} and {e.iteration for e in log} == {1}
    kinds = Counter[str]()
    for e in log:
        kinds[KINDS[e.kind]] += e.bytes
    # The gradients are made anew in each iteration; 64 x 256 floats are one activation of several.
    assert kinds["persistent"] >= 256 * 256 * 4 and kinds["activation"] + kinds["temporary"] >= 64 * 256 * 4
    assert 0 < kinds["persistent"] + kinds["activation"] <= sum(kinds.values())
    assert job["memory"]["peak_persistent_bytes"] >= 2 * 256 * 256 * 4
    done = gpushare("run", "train.py 6", "train.py 9", "--log-dir", "second")
    assert done.returncode == 0, done.stderr
    assert not list((tmp_path / "second").glob("*.alloc"))


@pytest.mark.usefixtures("train")
def test_a_file_that_cannot_be_written(gpushare: Run) -> None:
    done = gpushare("run", "train.py 2", "--trace", "missing/t.log")
    assert done.returncode == 2
    assert "--trace missing/t.log can't be written: No such file or directory" in done.stderr


@pytest.mark.usefixtures("train")
def test_a_full_disk_ends_the_log_and_not_the_run(gpushare: Run) -> None:
    done = gpushare("run", "train.py 20", "--trace", "/dev/full")
    assert done.returncode == 2 and "No space left" in done.stderr


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is not an allocation log"),
        (b"[]\n", "is not an allocation log"),
        (b'{"gpushare_allocation_log": 99}\n', "is of version 99"),
    ],
)
def test_no_log(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(UsageError, match=why):
        AllocationLog(tmp_path / "x")


def test_half_a_record_at_the_end_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b'{"gpushare_allocation_log": 2}\n' + bytes(60))
    log = AllocationLog(tmp_path / "x")
    assert len(log) == len(list(log)) == 1
