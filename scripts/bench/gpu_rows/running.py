"""Starts programs within the benchmark's time, and keeps their command lines.

Each command has a state directory and a cache of its own, so that no profile of an earlier run is found. The bridge of
a GPU, which is compiled, is taken from where it is always kept.
"""

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import GPUSHARE, JOBS, ROOT, environment

from .busy import Samples, watched
from .row import NoTimeLeft, NotMeasured

sys.path.append(str(ROOT / "scripts"))
import last_words
from quick_starts import COMPILED

LOOKS_S = 0.02
LEAST_S = 5.0  # a program that has less is not started
NATIVE_PEAK = ROOT / "scripts" / "bench" / "native_peak.py"
Extra = Mapping[str, str]


@dataclass(frozen=True)
class Ran:
    """`ends_s`: when each step ended, by job, on one clock for all processes; nothing for a job that failed.

    `native_bytes` is what torch's own allocator reserved at most, by process, and `device` what was seen of the device
    meanwhile. `residue_bytes` and `allocations`, of one job under gpushare: what it keeps between iterations, and the
    log of the profiled one; None if it has none.
    """

    ends_s: list[list[float]] = field(default_factory=list)
    outputs: list[bytes] = field(default_factory=list)
    native_bytes: list[int] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)
    residue_bytes: int | None = None
    allocations: bytes | None = None
    device: Samples = field(default_factory=Samples)

    @property
    def failed(self) -> list[str]:
        """Jobs under gpushare that did not end well, with what is told of them."""
        jobs = [job for job in self.summary["jobs"] if job["exit_code"] != 0 or job["status"] != "ok"]
        return [f"{job['name']} {job['status']}: {job['message'] or ''}".strip(": ") for job in jobs]


@dataclass
class Runner:
    """`deadline`: of everything, by time.monotonic(); `limit_s`: of one command. `lines` of what was started. `before`
    is called before each command."""

    device: str
    deadline: float
    limit_s: float
    lines: list[str] = field(default_factory=list)
    before: Callable[[], object] | None = None

    def gpushare(
        self,
        jobs: list[str],
        budget_bytes: int,
        *options: str,
        clock: bool = True,
        extra: Extra | None = None,
        accept: tuple[int, ...] = (0,),
    ) -> Ran:
        """`gpushare run`; with `clock` the ends of the jobs' steps are noted.

        :raises NotMeasured: it did not end in time, or with an exit code that is not in `accept`.
        """
        with self._folder() as folder:
            timed = [_timed(job, folder, k) if clock else job for k, job in enumerate(jobs)]
            files = ["--log-dir", str(folder / "logs"), "--summary", str(folder / "summary.json")]
            command = [*_gpushare(), "run", *timed, "--device", self.device, "--budget", str(budget_bytes)]
            command += ["--no-live", *files, *options]
            (code,) = self._ended([command], folder, extra)
            if self.device != "cpu" and "can't be built" in (folder / "0.err").read_text(errors="replace"):
                raise NotMeasured(f"the bridge to torch could not be built: {_words(folder)}")
            if code not in accept:
                raise NotMeasured(f"gpushare ended with exit code {code}: {_words(folder)}")
            return _seen(folder, len(jobs) if clock else 0)

    def python(self, jobs: list[str], *, clock: bool = True, extra: Extra | None = None) -> Ran:
        """Scripts in plain python, a process each, all at once; with `clock` each waits for the others' first step.

        :raises NotMeasured: one did not end in time, or not with exit code 0.
        """
        with self._folder() as folder:
            count = len(jobs) if clock else 0
            timed = [
                f"{shlex.quote(str(NATIVE_PEAK))} {_timed(jobs[k], folder, k, count)}" for k in range(count)
            ]
            commands = [[sys.executable, *shlex.split(job)] for job in timed or jobs]
            with watched(self.device) as device:
                codes = self._ended(commands, folder, extra)
            for k, code in enumerate(codes):
                if code != 0:
                    words = last_words.tail(last_words.end_of(folder / f"{k}.err"))
                    raise NotMeasured(f"plain python ended with exit code {code}: {words}")
            outputs = [(folder / f"{k}.out").read_bytes() for k in range(len(jobs))]
            peaks = [_native_peak(folder / f"{k}.err") for k in range(count)]
            return Ran(_ends(folder, count), outputs, peaks, device=device)

    @contextlib.contextmanager
    def _folder(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
            folder = Path(name)
            if self.device != "cpu":
                cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
                kept = cache / "gpushare" / "bridge"
                kept.mkdir(parents=True, exist_ok=True)
                (folder / "cache" / "gpushare").mkdir(parents=True)
                (folder / "cache" / "gpushare" / "bridge").symlink_to(kept)
            yield folder

    def _compiled(self) -> dict[str, str]:
        """Where imports are kept compiled: on a machine that is lent for a GPU each process would compile them."""
        return {} if self.device == "cpu" else {"PYTHONPYCACHEPREFIX": str(COMPILED)}

    def _ended(self, commands: list[list[str]], folder: Path, extra: Extra | None) -> list[int]:
        """Exit codes; what still runs when its time is over, or when this is interrupted, is killed."""
        left = self.deadline - time.monotonic()
        if left < LEAST_S:
            raise NoTimeLeft
        self.lines.append(_shown(commands, extra))
        if self.before:
            self.before()
        env = environment(None, folder, {**self._compiled(), **(extra or {})}, gpus=True)
        processes: list[subprocess.Popen[bytes]] = []
        try:
            for k, command in enumerate(commands):
                with (folder / f"{k}.out").open("wb") as out, (folder / f"{k}.err").open("wb") as err:
                    processes.append(
                        subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
                    )
            if not _over(processes, min(left, self.limit_s)):
                too_long = NotMeasured(f"no end within {self.limit_s:g} s")
                raise NoTimeLeft if left <= self.limit_s else too_long
            return [process.poll() or 0 for process in processes]
        finally:
            for process in processes:
                process.kill()  # gpushare's host ends with it
                process.wait()


def _over(processes: list[subprocess.Popen[bytes]], limit_s: float) -> bool:
    """Wait until all have ended, or one has failed, for which others may wait; False if that takes too long."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        codes = [process.poll() for process in processes]
        if None not in codes or any(codes):
            return True
        time.sleep(LOOKS_S)
    return False


def _gpushare() -> list[str]:
    """The console script, or the package of a tree that is in PYTHONPATH."""
    return [GPUSHARE] if Path(GPUSHARE).exists() else [sys.executable, "-m", "gpushare"]


def _timed(job: str, folder: Path, number: int, count: int = 0) -> str:
    """With a clock; of a `count` of processes each waits for the others."""
    outs = [f"--beside {folder / f'{k}.json'}" for k in range(count) if k != number]
    words = [shlex.quote(str(JOBS / "timed.py")), f"--out {folder / f'{number}.json'}", *outs, job]
    return " ".join(words)


def _shown(commands: list[list[str]], extra: Extra | None) -> str:
    """As somebody would type it in the tree."""
    before = "".join(f"{name}={value} " for name, value in (extra or {}).items())
    text = " & ".join(before + shlex.join(command) for command in commands)
    for long, short in ((GPUSHARE, "gpushare"), (sys.executable, "python"), (f"{ROOT}/", "")):
        text = text.replace(long, short)
    return re.sub(re.escape(tempfile.gettempdir()) + r"/tmp\w{8}", "DIR", text)


def _seen(folder: Path, clocks: int) -> Ran:
    summary = json.loads((folder / "summary.json").read_text())
    outputs = [(folder / "logs" / f"{job['name']}.out").read_bytes() for job in summary["jobs"]]
    residue = allocations = None
    if len(summary["jobs"]) == 1:
        for kept in (folder / "cache" / "gpushare" / "profiles").glob("*.json"):
            residue = json.loads(kept.read_text())["residue_bytes"]
        for log in (folder / "logs").glob("*.alloc"):
            allocations = log.read_bytes()
    return Ran(_ends(folder, clocks), outputs, [], summary, residue, allocations)


def _ends(folder: Path, count: int) -> list[list[float]]:
    files = [folder / f"{k}.json" for k in range(count)]
    return [json.loads(file.read_text())["ends_s"] if file.exists() else [] for file in files]


def _native_peak(err: Path) -> int:
    told = [line for line in err.read_text(errors="replace").splitlines() if line.startswith("native ")]
    if not told:
        raise NotMeasured(f"no peak was told: {last_words.tail(last_words.end_of(err))}")
    return int(told[-1].split()[1])


def _words(folder: Path) -> str:
    """The last ones of a run of gpushare."""
    return last_words.of_run(folder / "logs", last_words.end_of(folder / "0.err"))
