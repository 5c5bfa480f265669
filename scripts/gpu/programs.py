"""Programs of the tests that compute on a GPU, run one after the other; the shim is built for them first."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from .runner import Row

ROOT = Path(__file__).parent.parent.parent
SHIM = ROOT / "gpushare" / "_shim" / "libgpushare.so"
TENSORS = ROOT / "tests" / "framework" / "cuda" / "tensors.py"
LEAST_S = 1.0
# Equal results with the smallest workspaces: torch keeps one for each handle and stream, and budgets here are small.
WORKSPACES = ":16:8"
PROGRAMS = (
    (
        "bridge",
        "with the bridge as torch's allocator, jobs at once compute what each computes alone; graphs replay",
        [str(TENSORS), str(SHIM)],
        {},
    ),
    (
        "plain_allocator",
        "the same without a compiler, with torch's plain pluggable allocator, but for graphs",
        [str(TENSORS), str(SHIM), "plain"],
        {"CXX": "no-such-compiler"},
    ),
)
COUNT = 1 + len(PROGRAMS)


def run(limit_s: float) -> Iterator[Row]:
    """A row for the shim's build and one for each program; what has no time left is not checked."""
    deadline = time.monotonic() + limit_s
    built = build_shim(deadline)
    yield built
    for name, statement, command, environment in PROGRAMS:
        if built.verdict != "true":
            yield Row(name, statement, why="the shim was not built")
            continue
        with tempfile.TemporaryDirectory() as cache:
            fixed = {
                "CUBLAS_WORKSPACE_CONFIG": WORKSPACES,
                "PYTHONPATH": python_path(),
                "XDG_CACHE_HOME": cache,
            }
            fixed |= environment
            yield _run(Row(name, statement), [sys.executable, *command], fixed, deadline)


def python_path() -> str:
    """The tree first, then what the caller has set."""
    return os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))


def build_shim(deadline: float) -> Row:
    """Builds it into the tree, beside the package's Python files."""
    row = Row("shim_builds", "the shim builds with the cmake and g++ that are there")
    with tempfile.TemporaryDirectory() as folder:
        generator = "" if shutil.which("make") else "-G Ninja"
        make = f"cmake {generator} -S '{ROOT}' -B '{folder}' && cmake --build '{folder}' --target gpushare -j"
        row = _run(row, ["bash", "-c", make], {}, deadline)
        if row.verdict == "true":
            _install(Path(folder))
    return row


def _install(build: Path) -> None:
    """As the package has it, beside the tree's Python files."""
    source = SHIM.parent / "source"
    for part in ("bridge", "include"):
        shutil.copytree(ROOT / "shim" / part, source / part, dirs_exist_ok=True)
    new = SHIM.with_suffix(".new")
    shutil.copy(build / SHIM.name, new)
    os.replace(new, SHIM)  # never written in place: a process may have it loaded


def _run(row: Row, command: list[str], environment: dict[str, str], deadline: float) -> Row:
    left = deadline - time.monotonic()
    if left < LEAST_S:
        row.why = "no time was left"
        return row
    begin = time.monotonic()
    try:
        done = subprocess.run(
            command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=left
        )
    except subprocess.TimeoutExpired:
        row.why = f"no end within {left:.0f} s"
    else:
        said = " | ".join((done.stdout + done.stderr).split("\n")[-12:]).strip(" |")
        row.claims[f"exit code {done.returncode}; its last words: {said[-600:]}"] = done.returncode == 0
        row.verdict = "false" if done.returncode else "true"
    row.seconds = round(time.monotonic() - begin, 2)
    return row
