"""The C++ parts of checks: built with plain g++ in the background, loaded by name."""

import ctypes
import functools
import importlib.util
import json
import os
import shutil
import subprocess
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from .checks import CannotCheck

SOURCES = Path(__file__).parent / "native"
FOLDER = "GPU_CHECK_LIBRARIES"  # environment variable that tells workers where the libraries are
# What a library needs besides the C++ standard library: torch's c10 headers alone, or CUDA's as well.
NEEDS = {"throwing_allocator": "c10", "bridge": "cuda"}
ADDED = {"throwing_allocator": ["-DTHROW_OUT_OF_MEMORY"]}
SOURCE = {"throwing_allocator": "allocator"}
BUILD_LIMIT_S = 120
CUDA_HEADERS = ("cuda_runtime_api.h", "crt/host_defines.h")  # the second one lies in a package of its own


def torch_folder() -> Path:
    """Where torch is installed, without importing it."""
    spec = importlib.util.find_spec("torch")
    if not spec or not spec.origin:
        raise CannotCheck("torch is not installed")
    return Path(spec.origin).parent


def cuda_include() -> Path | None:
    """CUDA's headers: those of a toolkit, also of the one that nvcc is of, else those that came with torch's wheels."""
    named = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    toolkits = [Path(home, "include") for home in (*named, "/usr/local/cuda")]
    toolkits += sorted(Path("/usr/local").glob("cuda-*/include"), reverse=True)
    if nvcc := shutil.which("nvcc"):
        toolkits.append(Path(nvcc).resolve().parent.parent / "include")
    runtime, compilers = CUDA_HEADERS
    for at in toolkits:
        if all((at / header).is_file() for header in CUDA_HEADERS):
            return at
    # The wheels of CUDA 12 have a folder each, which `command` searches.
    if not any((at / compilers).is_file() for at in wheels()):
        return None
    return next((at for at in wheels() if (at / runtime).is_file()), None)


def wheels() -> list[Path]:
    """CUDA's headers that came with torch's packages."""
    return sorted((torch_folder().parent / "nvidia").glob("*/include"))


def command(name: str, folder: Path) -> list[str]:
    """How a library is compiled."""
    source = SOURCES / f"{SOURCE.get(name, name)}.cpp"
    line = ["g++", "-std=c++20", "-O2", "-shared", "-fPIC", "-Wall", "-Wextra", *ADDED.get(name, [])]
    needs = NEEDS.get(name)
    if needs:
        torch = torch_folder()
        api = torch / "include" / "torch" / "csrc" / "api" / "include"
        line += ["-isystem", str(torch / "include"), "-isystem", str(api)]
        line += [f"-L{torch / 'lib'}", f"-Wl,-rpath,{torch / 'lib'}"]
        line += ["-Wl,--no-as-needed", "-lc10"]
    if needs == "cuda":
        headers = cuda_include()
        if not headers:
            raise CannotCheck(f"CUDA's headers ({' and '.join(CUDA_HEADERS)}) were not found")
        line += ["-isystem", str(headers), *(part for at in wheels() for part in ("-idirafter", str(at)))]
        line += ["-lc10_cuda", "-ltorch_cpu", "-ltorch_cuda"]
    return [*line[:1], str(source), *line[1:], "-ldl", "-pthread", "-o", str(folder / f"{name}.so")]


def build(name: str, folder: Path) -> None:
    """Build a library. What went wrong is told where the library is loaded."""
    start = time.monotonic()
    try:
        done = subprocess.run(command(name, folder), capture_output=True, text=True, timeout=BUILD_LIMIT_S)
        lines = [line for line in done.stderr.splitlines() if "error" in line]
        why = (lines or done.stderr.splitlines() or ["g++ failed"])[0] if done.returncode else None
    except (CannotCheck, OSError, subprocess.TimeoutExpired) as error:
        why = str(error)
    report = {"seconds": round(time.monotonic() - start, 1), "why": why}
    (folder / f"{name}.json").write_text(json.dumps(report))


class Builds:
    """Libraries that are being built in the background."""

    def __init__(self, names: list[str], folder: Path) -> None:
        os.environ[FOLDER] = str(folder)
        self._threads = ThreadPoolExecutor(max_workers=max(1, (os.cpu_count() or 2) // 2))
        self._futures: dict[str, Future[None]] = {
            name: self._threads.submit(build, name, folder) for name in names
        }

    def ready(self, names: tuple[str, ...]) -> bool:
        return all(self._futures[name].done() for name in names)

    def wait(self, names: tuple[str, ...]) -> None:
        for name in names:
            self._futures[name].result()

    def wait_all(self, limit_s: float) -> None:
        wait(self._futures.values(), limit_s)

    def abandon(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def report(name: str) -> dict[str, Any]:
    """`seconds` that the build took, and `why` it failed or None."""
    found: dict[str, Any] = json.loads(Path(os.environ[FOLDER], f"{name}.json").read_text())
    return found


def path(name: str) -> str:
    """The file of a library that was built."""
    why = report(name)["why"]
    if why:
        raise CannotCheck(f"{name}.cpp does not compile here: {why}")
    return str(Path(os.environ[FOLDER], f"{name}.so"))


@functools.cache
def load(name: str, mode: int = ctypes.DEFAULT_MODE) -> ctypes.CDLL:
    return ctypes.CDLL(path(name), mode=mode)
