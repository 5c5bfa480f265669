"""A job that takes the host with it: who is to blame, and what `--restart` starts again."""

import json
import signal
from pathlib import Path

import pytest
from conftest import Run

from gpushare.telemetry.allocation_log import ALLOCATED, AllocationLog

# Waits for the other job, so that both run when it happens.
MEET = """
import ctypes, os, pathlib, sys, threading, time, torch
me, other = sys.argv[1:3]
pathlib.Path(me).touch()
while not pathlib.Path(other).exists():
    time.sleep(0.01)
print("begun", flush=True)
"""
CRASHES = {
    "a null pointer": "ctypes.string_at(0)",
    "abort": "os.abort()",
    "exit of C": "ctypes.CDLL(None).exit(3)",
    "a thread": "t = threading.Thread(target=ctypes.string_at, args=(0,)); t.start(); t.join()",
}
WORKS = "time.sleep(1.5)\nprint(torch.ones(10).sum().item())\n"


def write(folder: Path, crash: str) -> None:
    (folder / "bad.py").write_text(f"{MEET}time.sleep(0.5)\n{crash}\n")
    (folder / "good.py").write_text(MEET + WORKS)


def traced_jobs(path: Path) -> list[str]:
    log = AllocationLog(path)
    assert any(entry.what == ALLOCATED for entry in log)
    return [job["name"] for job in log.about["jobs"]]


JOBS = ("good.py 1 2", "bad.py 2 1")


@pytest.mark.parametrize("crash", CRASHES.values(), ids=CRASHES)
def test_the_job_whose_thread_crashed_is_named_and_left_out(
    crash: str, gpushare: Run, tmp_path: Path
) -> None:
    write(tmp_path, crash)
    how = f"a thread of bad crashed ({'SIGABRT' if 'abort' in crash else 'SIGSEGV'})"
    if "exit" in crash:
        how = "bad called exit(3) of the C library"
    done = gpushare("run", *JOBS, "--restart", "--log-dir", "logs", "--summary", "s.json", "--trace", "t")
    told = done.stdout + done.stderr
    assert done.returncode == 1, told
    assert f"while it ran: good, bad; {how}" in done.stderr, told
    assert "starting again from the first line: good; what they write goes to logs/restart-1" in done.stderr
    assert (tmp_path / "logs" / "good.out").read_text() == "begun\n"
    assert (tmp_path / "logs" / "restart-1" / "good.out").read_text() == "begun\n10.0\n"
    assert not (tmp_path / "logs" / "restart-2").exists()
    assert traced_jobs(tmp_path / "t") == ["good", "bad"]
    assert traced_jobs(tmp_path / "t.restart-1") == ["good"]
    summary = json.loads((tmp_path / "s.json").read_text())
    assert [j["status"] for j in summary["jobs"]] == ["lost", "crashed"]
    assert [[j["status"] for j in s["jobs"]] for s in summary["restarts"]] == [["ok"]]


def test_without_the_option_nothing_starts_again(gpushare: Run, tmp_path: Path) -> None:
    write(tmp_path, "ctypes.string_at(0)")
    done = gpushare("run", *JOBS, "--summary", "s.json")
    assert done.returncode == 4 and "a thread of bad crashed (SIGSEGV)" in done.stderr
    assert "starting again" not in done.stderr
    assert "restarts" not in json.loads((tmp_path / "s.json").read_text())


CHANGES_BUDGET = """
import subprocess
ask = [sys.executable, "-m", "gpushare", "budget", "640MiB", "--run", str(os.getppid())]
print(subprocess.run(ask, capture_output=True, text=True).stdout, flush=True)
pathlib.Path("changed").touch()
ctypes.string_at(0)
"""


def test_a_restart_has_the_budget_that_was_set_last(gpushare: Run, tmp_path: Path) -> None:
    write(tmp_path, CHANGES_BUDGET)
    until_changed = 'while not pathlib.Path("changed").exists():\n    time.sleep(0.01)\n'
    (tmp_path / "good.py").write_text(MEET + until_changed + WORKS)  # however long the change takes
    done = gpushare(
        "run", *JOBS, "--restart", "--budget", "512MiB", "--summary", "s.json", "--log-dir", "logs"
    )
    assert "has 640.0 MiB for good, bad" in (tmp_path / "logs" / "bad.out").read_text(), done.stderr
    summary = json.loads((tmp_path / "s.json").read_text())
    assert [s["budget_bytes"] >> 20 for s in summary["restarts"]] == [640]


KILLS_HOST = """
if not pathlib.Path("killed").exists():
    pathlib.Path("killed").touch()
    import subprocess
    subprocess.run(["sh", "-c", "kill -9 $PPID"])
    time.sleep(10)
print("well", flush=True)
"""


def test_where_nobody_can_be_blamed_each_starts_again_alone(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(MEET + KILLS_HOST)
    (tmp_path / "good.py").write_text(MEET + WORKS)
    done = gpushare("run", *JOBS, "--restart", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "while it ran: good, bad; which job is to blame can't be known" in done.stderr
    assert (tmp_path / "logs" / "restart-1" / "good.out").read_text() == "begun\n10.0\n"
    assert (tmp_path / "logs" / "restart-2" / "bad.out").read_text() == "begun\nwell\n"


def test_a_job_alone_is_not_started_again(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text(
        "import subprocess, os, time\n" + KILLS_HOST.replace("pathlib.", "__import__('pathlib').")
    )
    done = gpushare("run", "alone.py", "--restart")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "starting again" not in done.stderr


def test_a_crash_in_a_child_is_its_own(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "forks.py").write_text(
        "import ctypes, os\npid = os.fork()\n"
        "if pid == 0:\n    ctypes.string_at(0)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    done = gpushare("run", "forks.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"forks | {-signal.SIGSEGV}" in done.stdout


def test_a_culprit_that_was_alone_is_to_blame(gpushare: Run, tmp_path: Path) -> None:
    """Nobody was lost, so there is nobody to start again."""
    (tmp_path / "alone.py").write_text("import ctypes\nctypes.string_at(0)\n")
    assert [gpushare("run", "alone.py", *options).returncode for options in ([], ["--restart"])] == [4, 1]
