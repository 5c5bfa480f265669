"""The console script as a person meets it: bad input, failures, Ctrl-C, a killed host."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from conftest import Run, environment

TRAIN = """
import sys, torch
model = torch.nn.Linear(256, 256)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(int(sys.argv[1])):
    loss = model(torch.randn({rows}, 256)).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    print(step, loss.item())
"""


@pytest.fixture(autouse=True)
def scripts(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN.format(rows=64))
    (tmp_path / "big.py").write_text(TRAIN.format(rows=200_000))
    (tmp_path / "bad.py").write_text("x = 1\ny = (\n")
    (tmp_path / "three.py").write_text("import sys\nprint('out')\nsys.exit(3)\n")
    (tmp_path / "raises.py").write_text("def f():\n    return 1 / 0\n\nf()\n")
    (tmp_path / "folder").mkdir()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing to run"),
        (("none.py",), "no script none.py"),
        (("folder",), "is a directory"),
        (("bad.py",), "bad.py, line 2"),
        (("train.py", "--budget", "30XB"), "a size must be"),
        (("train.py", "--budget", "0"), "more than zero"),
        (("train.py", "--budget", "900TB"), "at most the device's memory"),
        (("train.py", "--device", "cuda"), "not supported yet"),
        (("train.py", "--bugdet", "1GB"), "no such option: --bugdet"),
        (("train.py", "--log-dir", "/proc/none"), "can't be written"),
        (("train.py", "--summary", "none/s.json"), "can't be written"),
    ],
)
def test_bad_input_starts_nothing(arguments: tuple[str, ...], message: str, gpushare: Run) -> None:
    done = gpushare("run", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""


def test_a_job_that_raises_leaves_the_other_alone(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    done = gpushare("run", "raises.py", "train.py 5", "--log-dir", "logs")
    assert done.returncode == 1
    expected = plain("raises.py")
    assert (tmp_path / "logs" / "raises.err").read_text() == expected.stderr
    assert len((tmp_path / "logs" / "train.out").read_text().splitlines()) == 5


def test_an_exit_code_is_told(gpushare: Run, tmp_path: Path) -> None:
    done = gpushare("run", "three.py", "--summary", "s.json")
    assert done.returncode == 1
    (job,) = json.loads((tmp_path / "s.json").read_text())["jobs"]
    assert (job["status"], job["exit_code"]) == ("failed", 3)
    assert "three | out" in done.stdout


def test_a_budget_too_small_for_one_job_is_refused_with_figures(gpushare: Run) -> None:
    done = gpushare("run", "big.py 5", "train.py 5", "--budget", "150MiB")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "big needs at least" in done.stdout and "the budget is 150.0 MiB" in done.stdout


def test_a_script_sees_its_own_world(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    (tmp_path / "world.py").write_text(
        "import atexit, os, pickle, sys, threading\n"
        "class C: pass\n"
        "assert type(pickle.loads(pickle.dumps(C()))) is C\n"
        "assert sys.modules['__main__'].C is C\n"
        "print(__name__, __file__, sys.argv, os.getcwd())\n"
        "print('err', file=sys.stderr)\n"
        "t = threading.Thread(target=lambda: print('thread', sys.argv)); t.start(); t.join()\n"
        "atexit.register(print, 'bye')\n"
        "os.chdir('folder'); print(os.getcwd())\n"
    )
    done = gpushare("run", "world.py 1", "world.py 2", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    for name, argument in (("world", "1"), ("world-2", "2")):
        expected = plain("world.py", argument)
        assert (tmp_path / "logs" / f"{name}.out").read_text() == expected.stdout
        assert (tmp_path / "logs" / f"{name}.err").read_text() == expected.stderr


def test_both_jobs_doubling_their_batch_does_not_hang(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "grow.py").write_text(
        "import torch\n"
        "m = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(8)])\n"
        "o = torch.optim.SGD(m.parameters(), lr=0.1)\n"
        "for step in range(30):\n"
        "    loss = m(torch.randn(4096 if step < 10 else 8192, 512)).square().mean()\n"
        "    o.zero_grad(); loss.backward(); o.step()\n"
    )
    done = gpushare("run", "grow.py", "grow.py", "--budget", "320MiB", "--summary", "s.json")
    assert done.returncode in (0, 1, 3)
    jobs = json.loads((tmp_path / "s.json").read_text())["jobs"]
    assert any(j["iterations"] == 30 for j in jobs)


def start(tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [str(Path(sys.executable).with_name("gpushare")), "run", *arguments]
    return subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment(tmp_path),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def host_of(process: subprocess.Popen[str], line: str) -> psutil.Process:
    """The host, once a job has printed `line`."""
    assert process.stdout
    for text in process.stdout:
        if line in text:
            break
    (host,) = psutil.Process(process.pid).children()
    return host


def test_ctrl_c_interrupts_the_jobs_and_keeps_the_summary(tmp_path: Path) -> None:
    process = start(tmp_path, "train.py 1000000", "--summary", "s.json")
    host = host_of(process, "train | 5")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, out + err
    assert not host.is_running()
    (job,) = json.loads((tmp_path / "s.json").read_text())["jobs"]
    assert job["status"] == "interrupted"
    assert "KeyboardInterrupt" in out


def test_a_killed_host_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text(
        "import subprocess, time\nsubprocess.Popen(['sleep', '1000'])\nprint('up', flush=True)\ntime.sleep(1000)\n"
    )
    process = start(tmp_path, "child.py", "--log-dir", "logs")
    host = host_of(process, "child | up")
    (grandchild,) = host.children()
    host.kill()
    _, err = process.communicate(timeout=30)
    assert process.returncode == 4
    assert "the host process died (signal 9) while it ran: child" in err
    assert (tmp_path / "logs" / "child.out").read_text() == "up\n"
    assert not grandchild.is_running()


def test_the_host_ends_with_its_parent(tmp_path: Path) -> None:
    process = start(tmp_path, "train.py 1000000")
    host = host_of(process, "train | 5")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    deadline = time.monotonic() + 10
    while host.is_running() and host.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not host.is_running() or host.status() == psutil.STATUS_ZOMBIE


def test_the_users_directory_does_not_hide_our_modules(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "gpushare").mkdir()
    (tmp_path / "gpushare" / "__init__.py").write_text("raise SystemExit('the wrong gpushare')\n")
    (tmp_path / "rich.py").write_text("raise SystemExit('the wrong rich')\n")
    (tmp_path / "hello.py").write_text("import os\nprint('hello')\n")
    done = gpushare("run", "hello.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "hello | hello" in done.stdout
