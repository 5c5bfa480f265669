"""Whole runs on a GPU: the budget as the driver sees it, what jobs compute, ask and are told, and faults.

None of them runs where there is no GPU; `scripts/gpu_check.py --tests` runs them where there is one.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from conftest import console, environment, what_hangs

sys.path.append(str(Path(__file__).parent.parent.parent / "scripts"))
import last_words

pytestmark = pytest.mark.gpu
JOBS = Path(__file__).parent / "gpu_jobs"
SCRIPTS = Path(__file__).parent.parent.parent / "scripts" / "gpu" / "scripts"
MIB, GIB = 1 << 20, 1 << 30
CONTEXT_BYTES = 3 * GIB // 2  # what CUDA, its libraries and kernels have outside the pool
ROWS = 1 << 17  # of alternates.py: a peak of several GiB
LIMIT_S = 45.0  # of a command: half of what scripts/gpu_check.py has for all tests, or a hang would not be told as one


@dataclass
class Gpu:
    """Runs commands in a folder of their own; the compiled bridge is where it is always kept."""

    folder: Path

    def __post_init__(self) -> None:
        kept = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpushare" / "bridge"
        kept.mkdir(parents=True, exist_ok=True)
        (self.folder / "cache" / "gpushare").mkdir(parents=True)
        (self.folder / "cache" / "gpushare" / "bridge").symlink_to(kept)

    def start(self, command: list[str]) -> subprocess.Popen[str]:
        fixed = {**environment(self.folder, gpus=True), "CUBLAS_WORKSPACE_CONFIG": ":16:8"}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, cwd=self.folder, env=fixed, text=True, **pipes)

    def run(self, *arguments: object, timeout: float = LIMIT_S) -> subprocess.CompletedProcess[str]:
        """`gpushare ARGUMENTS`; its logs are in `logs`, its summary in `s.json`."""
        return self._end(self.start([*console(), *map(str, arguments)]), timeout)

    def plain(self, *arguments: object, timeout: float = LIMIT_S) -> subprocess.CompletedProcess[str]:
        return self._end(self.start([sys.executable, *map(str, arguments)]), timeout)

    def together(self, *jobs: object, options: str = "") -> subprocess.CompletedProcess[str]:
        told = ["--device", "cuda", "--no-live", "--log-dir", "logs", "--summary", "s.json"]
        return self.run("run", *jobs, *told, *options.split())

    @property
    def summary(self) -> dict[str, Any]:
        written = self.folder / "s.json"
        assert written.exists(), f"there is no summary\n{last_words.in_full(self.folder, '')}"
        told: dict[str, Any] = json.loads(written.read_text())
        return told

    def told(self, done: subprocess.CompletedProcess[str]) -> str:
        """Why it ended so: what gpushare, the jobs and the host have said."""
        return f"exit code {done.returncode}\n{last_words.in_full(self.folder, done.stdout + done.stderr)}"

    def output(self, name: str) -> str:
        return (self.folder / "logs" / f"{name}.out").read_text()

    def _end(self, process: subprocess.Popen[str], timeout: float) -> subprocess.CompletedProcess[str]:
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            found = what_hangs(process, self.folder)
            process.kill()
            # The stacks come last: of what is long the end is shown.
            pytest.fail(f"{process.args} did not end within {timeout:g} s\n{process.communicate()}\n{found}")
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.fixture
def gpu(tmp_path: Path) -> Gpu:
    return Gpu(tmp_path)


@dataclass
class Used:
    """The device's memory that is in use, as NVML says, looked at all the time."""

    bytes_now: Callable[[], int]
    before: int = field(init=False)
    most: int = 0

    def __post_init__(self) -> None:
        self.before = self.most = self.bytes_now()

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        done = threading.Event()

        def look() -> None:
            while not done.wait(0.01):
                self.most = max(self.most, self.bytes_now())

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    @property
    def taken(self) -> int:
        return self.most - self.before


@pytest.fixture
def used() -> Used:
    import pynvml

    asked = [sys.executable, "-c", "import torch; print(torch.cuda.get_device_properties(0).uuid)"]
    uuid = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=120).stdout.strip()
    pynvml.nvmlInit()
    device = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}".encode())
    return Used(lambda: int(pynvml.nvmlDeviceGetMemoryInfo(device).used))


def peak_bytes(text: str) -> int:
    found = re.search(r"peak_bytes (\d+)", text)
    assert found, text
    return int(found[1])


@pytest.mark.alone
def test_the_device_never_holds_more_than_the_budget(gpu: Gpu, used: Used) -> None:
    command = f"{JOBS / 'alternates.py'} cuda {ROWS} 30"
    alone = gpu.plain(*command.split())
    peak = peak_bytes(alone.stderr)
    assert peak > 3 * GIB, "or what lies outside the pool hides what two jobs take"
    budget = int(1.25 * peak)
    with used.watched():
        done = gpu.together(command, command, options=f"--budget {budget} --policy zico")
    assert done.returncode == 0, gpu.told(done)
    for name in ("alternates", "alternates-2"):
        assert gpu.output(name) == alone.stdout
    assert gpu.summary["pool_peak_bytes"] <= budget
    assert peak / 2 < used.taken <= budget + CONTEXT_BYTES, (used.taken, budget, peak)


def test_two_jobs_overlap_and_print_what_each_prints_alone(gpu: Gpu) -> None:
    commands = [f"{JOBS / 'alternates.py'} cuda {rows} 80" for rows in (20_000, 30_000)]
    alone = [gpu.plain(*command.split()) for command in commands]
    budget = int(1.6 * max(peak_bytes(done.stderr) for done in alone))
    done = gpu.together(*commands, options=f"--budget {budget} --policy zico")
    assert done.returncode == 0, gpu.told(done)
    assert [gpu.output(name) for name in ("alternates", "alternates-2")] == [one.stdout for one in alone]
    assert gpu.summary["overlap_s"] > 0
    assert all(job["iterations"] >= 70 for job in gpu.summary["jobs"]), gpu.summary["jobs"]


def test_jobs_that_are_set_aside_come_back_with_what_they_kept(gpu: Gpu) -> None:
    command = f"{JOBS / 'alternates.py'} cuda 20000 60"
    alone = gpu.plain(*command.split())
    budget = int(3.2 * peak_bytes(alone.stderr))
    done = gpu.together(
        f"{JOBS / 'tells.py'} cuda", command, command, options=f"--budget {budget} --policy greedy"
    )
    assert done.returncode == 0, gpu.told(done)
    assert gpu.output("tells").startswith("away [2") or gpu.output("tells").startswith("away [3")
    assert [gpu.output(name) for name in ("alternates", "alternates-2")] == [alone.stdout] * 2
    assert sum(job["copies_out"] for job in gpu.summary["jobs"]) >= 1, gpu.summary["jobs"]


def test_a_profile_is_near_what_torch_reserves(gpu: Gpu) -> None:
    command = ["alternates.py", "cuda", "20000", "12"]
    reserved = peak_bytes(gpu.plain(JOBS / command[0], *command[1:]).stderr)
    job = " ".join([str(JOBS / command[0]), *command[1:]])
    done = gpu.run("profile", "--json", "--device", "cuda", "--budget", 4 * reserved, job)
    assert done.returncode == 0, gpu.told(done)
    profile = json.loads(done.stdout)
    assert profile["device"].startswith("cuda ")
    assert 0.6 * reserved < profile["peak_held_bytes"] <= 1.05 * reserved, (
        profile["peak_held_bytes"],
        reserved,
    )


def test_figures_are_of_the_job_that_asks(gpu: Gpu) -> None:
    sizes = (40, 90)
    done = gpu.together(*(f"{JOBS / 'asks.py'} {size}" for size in sizes), options="--budget 1GiB")
    assert done.returncode == 0, gpu.told(done)
    for name, size in zip(("asks", "asks-2"), sizes, strict=True):
        assert gpu.output(name).splitlines() == [
            f"{size + 3} {size + 3}",
            f"{size} {size + 3}",
            f"{size} {size}",
            "1024 True",
            "True",
        ]


def test_out_of_memory_says_the_figures_and_is_one_jobs(gpu: Gpu) -> None:
    other = f"{JOBS / 'alternates.py'} cuda 4000 40"
    alone = gpu.plain(*other.split())
    done = gpu.together(f"{JOBS / 'asks_too_much.py'} 5", other, options="--budget 2GiB")
    assert done.returncode == 3, gpu.told(done)  # it can't run in any budget below that
    assert "needs at least 5.00 GiB, further on maybe more, and the budget is 2.00 GiB" in done.stdout, (
        gpu.told(done)
    )
    said = (gpu.folder / "logs" / "asks_too_much.err").read_text()
    assert "OutOfMemoryError: CUDA out of memory. Tried to allocate 5.0" in said, said
    assert "the budget is 2048.0 MiB" in said, said
    assert gpu.output("asks_too_much") == "before 10.0\n"
    assert gpu.output("alternates") == alone.stdout
    assert [job["exit_code"] for job in gpu.summary["jobs"]] == [1, 0]


def test_after_a_device_assert_the_others_start_again_and_end_well(gpu: Gpu) -> None:
    other = f"{SCRIPTS / 'perceptron.py'} --steps 120"
    alone = gpu.plain(*other.split())
    assert alone.returncode == 0, alone.stderr
    options = f"--budget {2 * peak_bytes(alone.stderr)} --restart"
    done = gpu.together(f"{SCRIPTS / 'asserts.py'} --steps 3", other, options=options)
    told = f"{gpu.summary}\n{gpu.told(done)}"
    assert done.returncode != 0, "the culprit fails again"
    assert "device-side assert" in told and "asserts" in done.stderr, told
    assert {job["name"]: job["status"] for job in gpu.summary["jobs"]}["perceptron"] == "lost", told
    ends = [(job["name"], job["status"]) for again in gpu.summary["restarts"] for job in again["jobs"]]
    assert ("perceptron", "ok") in ends and ("asserts", "ok") not in ends, told
    again = [path.read_text() for path in gpu.folder.glob("logs/restart-*/perceptron.out")]
    assert alone.stdout in again, told


@pytest.mark.alone
def test_an_interrupted_run_leaves_nothing_on_the_device(gpu: Gpu, used: Used) -> None:
    job = f"{JOBS / 'alternates.py'} cuda {ROWS} 100000"
    process = gpu.start([*console(), "run", job, job, "--device", "cuda", "--budget", "8GiB", "--no-live"])
    try:
        wait_for(lambda: used.bytes_now() > used.before + 2 * GIB, 30)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=15)
    except (AssertionError, subprocess.TimeoutExpired) as error:
        found = what_hangs(process, gpu.folder)
        process.kill()
        pytest.fail(f"{error}\n{process.communicate()}\n{found}")
    finally:
        process.kill()
    assert process.returncode == 130, (out, err)
    wait_for(lambda: used.bytes_now() < used.before + 256 * MIB, 10)


def wait_for(so: Callable[[], bool], limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while not so():
        assert time.monotonic() < deadline, f"not so within {limit_s:g} s"
        time.sleep(0.05)
