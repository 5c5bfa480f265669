"""What the benchmarks share: running the console script, and writing results as they came out."""

import argparse
import contextlib
import datetime
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "scripts" / "examples"
JOBS = ROOT / "scripts" / "bench" / "jobs"
RESULTS = Path(__file__).parent / "results"
GPUSHARE = str(Path(sys.executable).with_name("gpushare"))
KEEP_PAGES = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 40),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    "MALLOC_TOP_PAD_": str(64 << 20),
}


def environment(
    threads: int | None, home: Path, extra: dict[str, str] | None = None, *, gpus: bool = False
) -> dict[str, str]:
    """An environment with a home of its own, so that no profile of an earlier run is found. Without `gpus` what is
    measured on the CPU stays there where there is a GPU."""
    env = {**os.environ, "XDG_STATE_HOME": str(home / "state"), "XDG_CACHE_HOME": str(home / "cache")}
    if threads:
        env["OMP_NUM_THREADS"] = str(threads)
    if not gpus:
        env["CUDA_VISIBLE_DEVICES"] = ""
    return {**env, **(extra or {})}


Mapping = tuple[int, int, int]  # begin, end, resident bytes


def resident_mappings(pid: int) -> list[Mapping]:
    """What lies in a process's memory, from /proc/PID/smaps; nothing if the process is gone."""
    found: list[Mapping] = []
    try:
        with open(f"/proc/{pid}/smaps") as lines:
            for line in lines:
                if "-" in line.split(" ", 1)[0]:
                    begin, end = (int(part, 16) for part in line.split(" ", 1)[0].split("-"))
                elif line.startswith("Rss:"):
                    found.append((begin, end, int(line.split()[1]) * 1024))
    except OSError:
        return []
    return found


def watch(process: subprocess.Popen[bytes], every_s: float = 2.0) -> list[list[Mapping]]:
    """Sample the mappings of the host, the first child of `process`, until `process` ends.

    A sample takes a processor some 40 ms; five in a second made jobs slower that use all processors. What is resident
    stays so until the pool has no other page left, so few samples see the most there was.
    """
    samples = []
    while process.poll() is None:
        for child in psutil.Process(process.pid).children()[:1]:
            samples.append(resident_mappings(child.pid))
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(every_s)
    return samples


def largest_in(samples: list[list[Mapping]], begin: int, length: int) -> int:
    """Most bytes that were resident in an address range at once."""
    end = begin + length
    return max((sum(r for b, e, r in s if b >= begin and e <= end) for s in samples), default=0)


def run_gpushare(
    jobs: list[str],
    budget_bytes: int,
    threads: int | None,
    *options: str,
    sample: bool = False,
    extra: dict[str, str] | None = None,
    accept: tuple[int, ...] = (0,),
    observe: Callable[[subprocess.Popen[bytes]], object] = lambda _: None,
) -> dict[str, Any]:
    """Run jobs with nothing known of them; the summary, with `exit_code` and `wall_s` of the whole command.

    `extra` goes into the environment; exit codes that are not in `accept` end the benchmark. `observe` is called once
    with the command under way, and may watch it to its end.
    With `sample` also `pool_rss_bytes`: the most that was resident in the pool's range, seen from outside.
    """
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        summary = home / "summary.json"
        command = [GPUSHARE, "run", *jobs, "--budget", str(budget_bytes), "--summary", str(summary), *options]
        start = time.monotonic()
        with (home / "out").open("wb") as out:
            env = environment(threads, home, extra)
            process = subprocess.Popen(command, env=env, stdout=out, stderr=out)
            samples = watch(process) if sample else []
            observe(process)
            status = process.wait()
        wall_s = time.monotonic() - start
        if status not in accept:
            sys.exit(f"{shlex.join(command)} ended with {status}:\n{(home / 'out').read_text()}")
        result: dict[str, Any] = json.loads(summary.read_text())
    if sample:
        result["pool_rss_bytes"] = largest_in(samples, result["pool_base"], result["pool_reserved_bytes"])
    return {**result, "wall_s": wall_s, "exit_code": status}


def run_plain(job: str, threads: int | None, extra: dict[str, str] | None = None) -> tuple[float, str]:
    """Seconds and stdout of a script under plain python."""
    with tempfile.TemporaryDirectory() as folder:
        env = environment(threads, Path(folder), extra)
        start = time.monotonic()
        done = subprocess.run(
            [sys.executable, *job.split()], env=env, check=True, capture_output=True, text=True
        )
        return time.monotonic() - start, done.stdout


def profile(job: str, threads: int | None) -> dict[str, Any]:
    """`gpushare profile --json` of a job."""
    with tempfile.TemporaryDirectory() as folder:
        command = [GPUSHARE, "profile", "--json", *job.split()]
        done = subprocess.run(
            command, env=environment(threads, Path(folder)), check=True, capture_output=True, text=True
        )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def add_output_options(parser: argparse.ArgumentParser, name: str) -> None:
    """Options of benchmarks that take long; `name` is that of the results."""
    parser.add_argument("--estimate", action="store_true", help="say how long it takes, and end")
    parser.add_argument("--name", default=name)
    parser.add_argument("--print", action="store_true", help="write no results")


def conclude(args: argparse.Namespace, figures: Any, table: list[list[Any]]) -> None:
    """Of a benchmark with `--print` and `--name`: write its results with its command, or only print the table."""
    if args.print:
        print("\n".join("  ".join(map(str, row)) for row in table))
        return
    script = Path(sys.argv[0]).name
    write(args.name, shlex.join(["python", f"scripts/bench/{script}", *sys.argv[1:]]), figures, table)


def write(name: str, command: str, figures: Any, table: list[list[Any]]) -> None:
    """Write NAME.json and NAME.md to the results, and print the latter; the first row of `table` is its heading."""
    print(save(name, command, figures, table))


def save(
    name: str, command: str, figures: Any, table: list[list[Any]], more: dict[str, Any] | None = None
) -> str:
    """As `write`, without printing; what NAME.md says. Each file is replaced as a whole.

    `name` may be a path, whose folder is made. `more` is said of the machine, too.
    """
    about = {
        "date": datetime.date.today().isoformat(),
        "command": command,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, "
        f"{psutil.virtual_memory().total >> 30} GiB, Linux {platform.release().split('-')[0]}",
        "python": platform.python_version(),
        "torch": version("torch"),
        "gpushare": _gpushare_version(),
        "commit": commit(),
        **(more or {}),
    }
    at = Path(name).resolve() if len(Path(name).parts) > 1 else RESULTS / name
    at.parent.mkdir(parents=True, exist_ok=True)
    _replace(at.with_name(f"{at.name}.json"), json.dumps({**about, "figures": figures}, indent=2) + "\n")
    lines = [f"# {at.name}", "", *(f"- {key}: {value}" for key, value in about.items()), ""]
    heading, *rows = table
    lines += ["| " + " | ".join(map(str, heading)) + " |", "|" + "---|" * len(heading)]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    _replace(at.with_name(f"{at.name}.md"), "\n".join(lines) + "\n")
    return "\n".join(lines)


def commit() -> str:
    """Of the tree that the benchmark lies in, with `-dirty` where files differ from it, results apart."""
    described = ["git", "-C", str(ROOT), "describe", "--always", "--exclude=*"]
    changed = ["git", "-C", str(ROOT), "diff", "--quiet", "HEAD", "--", ".", ":!scripts/bench/results"]
    try:
        name = subprocess.run(described, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return name + "-dirty" * (subprocess.run(changed).returncode != 0)


def _gpushare_version() -> str:
    try:
        return version("gpushare")
    except PackageNotFoundError:
        return "of a tree, not installed"


def _replace(path: Path, text: str) -> None:
    unfinished = path.with_name(f".{path.name}.new")
    unfinished.write_text(text)
    unfinished.replace(path)
