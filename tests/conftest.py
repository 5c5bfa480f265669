"""Shared by the end-to-end tests: the console script with a home of its own, and a small script."""

import contextlib
import ctypes
import functools
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

signal.signal(signal.SIGINT, signal.default_int_handler)  # some test runners start us with it ignored
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # so does nohup
with contextlib.suppress(ImportError):  # not there where only the tests that need a GPU run
    from hypothesis import HealthCheck, settings

    # A machine that stalls for a moment is no counterexample.
    settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("any machine")
os.environ.setdefault("GPUSHARE_TEST_SEED", str(random.randrange(10**6)))
EXAMPLES = Path(__file__).parent.parent / "scripts" / "examples"
Run = Callable[..., subprocess.CompletedProcess[str]]
TRAIN = """
import sys, torch
model = torch.nn.Linear(256, 256)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(int(sys.argv[1])):
    loss = model(torch.randn({rows}, 256)).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    print(step, loss.item())
"""


# Two of these outgrow their claims in their eleventh iteration, and neither has room for the last of its tensors beside
# nine of the other's: one is copied out for the other.
_OUTGROW = """
import pathlib, signal, sys, threading, time, torch
#FIRST
model = torch.nn.Linear(512, 512)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def meet(count):
    pathlib.Path(f"{count}-{sys.argv[1]}").touch()
    while not all(pathlib.Path(f"{count}-{who}").exists() for who in "ab"):
        time.sleep(0.01)

for step in range(12):
    loss, kept = model(torch.randn(64, 512)).square().mean(), []
    for count in range(6 if step < 10 else 12):
        if step == 10 and count in (0, 9):
            meet(count)
        kept.append(loss * torch.ones(1 << 20))
    if step == 10:#AT_TEN
    optimizer.zero_grad()
    torch.stack([k.mean() for k in kept]).mean().backward()
    optimizer.step()
"""


def outgrow(*, first: str, at_ten: str) -> str:
    """For two jobs, a and b, that outgrow a budget of 170 MiB: what each does first, and once it has grown."""
    return _OUTGROW.replace("#FIRST", first).replace("#AT_TEN", at_ten)


def environment(home: Path, *, gpus: bool = False) -> dict[str, str]:
    """Without GPUs what asks for no device, gpushare and scripts, is on the CPU wherever the tests run."""
    # One thread and one code path of MKL.
    fixed = {"OMP_NUM_THREADS": "1", "MKL_CBWR": "COMPATIBLE", "HOME": str(home)}
    if not gpus:
        fixed["CUDA_VISIBLE_DEVICES"] = ""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("XDG_")}
    return {**kept, **fixed, "XDG_STATE_HOME": str(home / "state"), "XDG_CACHE_HOME": str(home / "cache")}


def what_hangs(process: subprocess.Popen[str], home: Path) -> str:
    """The stacks of the host's threads, and its children, of a run that does not end."""
    parent = psutil.Process(process.pid)
    children = parent.children(recursive=True)
    for host in parent.children():
        host.send_signal(signal.SIGQUIT)
    time.sleep(1)
    stacks = [log.read_text() for log in home.rglob("host.log")]
    for child in reversed(children):
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()
    return "\n".join([f"processes: {children}", *stacks])


def console() -> list[str]:
    """The installed script; where there is none, as on a machine that has only the tree, the module."""
    script = Path(sys.executable).with_name("gpushare")
    return [str(script)] if script.exists() else [sys.executable, "-m", "gpushare"]


def limited(
    command: list[str], folder: Path, which: int, limits: tuple[int, int]
) -> subprocess.CompletedProcess[str]:
    """A command where the system allows no more: `which` limit of `resource`, soft and hard."""
    return subprocess.run(
        command,
        cwd=folder,
        env=environment(folder),
        text=True,
        capture_output=True,
        timeout=240,
        preexec_fn=functools.partial(resource.setrlimit, which, limits),
    )


@functools.cache
def why_no_gpu() -> str:
    """Why the tests that are marked `gpu` can't run here; empty if they can."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return f"it needs an NVIDIA GPU: {error}"
    python = os.environ.get("GPUSHARE_CUDA_PYTHON", sys.executable)
    asked = [python, "-c", "import torch; print(torch.cuda.is_available())"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=120)
    return "" if done.stdout == "True\n" else f"the torch of {python} sees no GPU: {done.stderr[-200:]}"


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and (why := why_no_gpu()):
        pytest.skip(why)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """What fails is named at once: of a run that is cut off by a clock nothing else would be known."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(NamesFailures(reporter))


class NamesFailures:
    def __init__(self, reporter: Any) -> None:
        self.reporter = reporter

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            self.reporter.write_line(f"\n{report.nodeid}: {crash.message[:2000] if crash else report.when}")


@pytest.fixture
def gpushare(tmp_path: Path) -> Run:
    """Runs the real console script in `tmp_path`."""

    def run(*arguments: object, timeout: float = 240) -> subprocess.CompletedProcess[str]:
        command = [*console(), *map(str, arguments)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(command, cwd=tmp_path, env=environment(tmp_path), text=True, **pipes)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            found = what_hangs(process, tmp_path)
            process.kill()
            pytest.fail(f"{command} did not end within {timeout} s\n{process.communicate()}\n{found}")
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    return run


@pytest.fixture
def plain(tmp_path: Path) -> Run:
    """Runs a script with plain python."""

    def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *map(str, arguments)]
        return subprocess.run(
            command,
            cwd=cwd or tmp_path,
            env=environment(tmp_path),
            text=True,
            capture_output=True,
            timeout=240,
        )

    return run


@pytest.fixture
def train(tmp_path: Path) -> None:
    """`train.py STEPS` in `tmp_path`, with little memory."""
    (tmp_path / "train.py").write_text(TRAIN.format(rows=64))
