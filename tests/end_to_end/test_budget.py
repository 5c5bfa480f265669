"""`gpushare budget` on a run that is under way."""

import json
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from conftest import Run, environment

from gpushare.units import format_bytes

MIB = 1 << 20


@pytest.fixture(autouse=True)
def runtime_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of this test alone. A socket's path is short."""
    monkeypatch.setenv("TMPDIR", str(tmp_path_factory.mktemp("r")))


# Holds 64 MiB for most of each iteration: two at once are above 100 MiB.
WIDE = """
import sys, torch
torch.manual_seed(1)
model = torch.nn.Linear(256, 256)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(int(sys.argv[1])):
    loss = model(torch.randn(2000, 256)).square().mean()
    held = torch.ones(16 << 20)
    optimizer.zero_grad(); loss.backward()
    del held
    optimizer.step()
    print(step, loss.item())
"""


def start(tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [str(Path(sys.executable).with_name("gpushare")), "run", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=tmp_path, env=environment(tmp_path), text=True, **pipes)


def wait_for(path: Path, text: str) -> None:
    deadline = time.monotonic() + 60
    while not (path.exists() and text in path.read_text()):
        assert time.monotonic() < deadline, f"{text!r} did not come to {path}"
        time.sleep(0.05)


def test_the_budget_changes_while_jobs_run(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    (tmp_path / "wide.py").write_text(WIDE)
    assert gpushare("run", "wide.py 6", "--budget", "100MiB").returncode == 0
    running = start(
        tmp_path,
        "wide.py 300",
        "wide.py 300",
        "--policy",
        "greedy",  # never takes turns, so more memory is used as soon as it is there
        "--budget",
        "100MiB",
        "--log-dir",
        "logs",
        "--summary",
        "s.json",
    )
    try:
        wait_for(tmp_path / "logs" / "wide-2.out", "\n3 ")
        shown = gpushare("budget")
        assert shown.returncode == 0, shown.stderr
        assert f"run {running.pid} has 100.0 MiB for wide, wide-2" in shown.stdout
        small = gpushare("budget", "40MiB")
        assert small.returncode == 3
        assert "the budget can't be 40.0 MiB: the jobs need at least" in small.stderr
        more = gpushare("budget", "200MiB", "--run", running.pid)
        assert more.returncode == 0 and f"run {running.pid} has 200.0 MiB" in more.stdout
        text = f"{100 * 250 * MIB / psutil.virtual_memory().total:.4f}"
        share = gpushare("budget", f"{text}%")
        pages = int(psutil.virtual_memory().total * (float(text) / 100)) // (2 * MIB)
        assert share.returncode == 0 and f" {format_bytes(pages * 2 * MIB)} for wide" in share.stdout
        less = gpushare("budget", "90MiB")
        assert less.returncode == 0, less.stderr
        deadline = time.monotonic() + 20
        while "has 90.0 MiB" not in gpushare("budget").stdout:
            assert time.monotonic() < deadline
        out, err = running.communicate(timeout=240)
    finally:
        running.kill()
    assert running.returncode == 0, err
    assert "the budget is to be 200.0 MiB" in err
    expected = plain("wide.py", "300").stdout
    for name in ("wide", "wide-2"):
        assert (tmp_path / "logs" / f"{name}.out").read_text() == expected
    summary = json.loads((tmp_path / "s.json").read_text())
    assert summary["pool_peak_bytes"] > 100 * MIB
    assert (summary["budget_bytes"], summary["budget_at_end_bytes"]) == (100 * MIB, 90 * MIB)
    assert "budget 100.0 MiB (90.0 MiB at the end)" in out


# In the middle of an iteration it waits until the test lets it go on, and one of them keeps more from there on.
GROWS = """
import sys, time
from pathlib import Path
import torch
name, more = sys.argv[1], int(sys.argv[2])
torch.manual_seed(0)
model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(12)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(16):
    loss = model(torch.randn(10000, 64)).square().mean()
    if step == 12:
        Path(f"{name}.inside").touch()
        while not Path("go-on").exists():
            time.sleep(0.01)
        kept = [torch.zeros(1 << 20) for _ in range(more)]
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    print(step, loss.item(), flush=True)
"""


def test_a_smaller_budget_that_a_job_outgrows_is_taken_back(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "grows.py").write_text(GROWS)
    running = start(
        tmp_path,
        "grows.py a 20",
        "grows.py b 0",
        "--budget",
        "250MiB",
        "--policy",
        "greedy",
        "--summary",
        "s.json",
    )
    try:
        deadline = time.monotonic() + 60
        while not all((tmp_path / f"{name}.inside").exists() for name in "ab"):
            assert time.monotonic() < deadline and running.poll() is None
            time.sleep(0.02)
        less = gpushare("budget", "50MiB")
        assert less.returncode == 0 and "goes from 250.0 MiB to 50.0 MiB as soon as" in less.stdout, (
            less.stderr
        )
        (tmp_path / "go-on").touch()
        _, err = running.communicate(timeout=240)
    finally:
        running.kill()
    assert running.returncode == 0, err
    assert "the budget is to be 50.0 MiB" in err
    assert "the budget stays 250.0 MiB" in err and "have come to need" in err
    summary = json.loads((tmp_path / "s.json").read_text())
    assert summary["budget_bytes"] == 250 * MIB and "budget_at_end_bytes" not in summary


# Of its first iteration nothing is known. At its end it waits once more, so that the budget may change again.
FIRST = """
import time
from pathlib import Path
import torch
def wait_for(name):
    while not Path(name).exists():
        time.sleep(0.01)
weight = torch.ones(64, requires_grad=True)
try:
    for step in range(3):
        print("begins", flush=True)
        wait_for("go-on")
        (torch.ones(40 << 12, 64) * weight).sum().backward()
finally:
    print("ends", flush=True)
    wait_for("over")
"""


def test_what_a_job_needs_is_not_known_at_first(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "first.py").write_text(FIRST)
    running = start(tmp_path, "first.py", "--budget", "200MiB", "--log-dir", "logs")
    try:
        wait_for(tmp_path / "logs" / "first.out", "begins")
        low = gpushare("budget", "10MiB")
        assert low.returncode == 2 and "at least 32.0 MiB, but '10MiB' is 10.0 MiB" in low.stderr
        early = gpushare("budget", "60MiB")
        assert early.returncode == 3 and "what first needs is not known before its first" in early.stderr
        assert gpushare("budget", "210MiB").returncode == 0
        forced = gpushare("budget", "60MiB", "--force")
        assert forced.returncode == 0 and "has 60.0 MiB for first" in forced.stdout, forced.stderr
        (tmp_path / "go-on").touch()
        wait_for(tmp_path / "logs" / "first.out", "ends")
        assert gpushare("budget", "220MiB").returncode == 0
        most = gpushare("budget", "8194MiB")
        assert most.returncode == 3 and "addresses were reserved for 8192.0 MiB" in most.stderr
        (tmp_path / "over").touch()
        out, err = running.communicate(timeout=240)
    finally:
        running.kill()
    assert running.returncode == 3, err
    assert "first needs at least" in out and ", and the budget is 60.0 MiB" in out


def test_misuse(gpushare: Run) -> None:
    none = gpushare("budget", "1GiB")
    assert none.returncode == 2 and "no run of yours is under way" in none.stderr
    absent = gpushare("budget", "1GiB", "--run", "1")
    assert absent.returncode == 2 and "no run 1 of yours is under way" in absent.stderr
