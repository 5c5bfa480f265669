"""What the other parts need, built once: the shim into the tree, the stress, the bridge to torch."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from . import programs
from .runner import Row

FOLDER = programs.ROOT / "build" / "gpu-check"
STRESS = "cuda_device_stress"
COUNT = 3
BRIDGE = "from gpushare.framework import cuda_bridge, cuda_toolchain; "
BRIDGE += "print(cuda_bridge.build(cuda_toolchain.find()))"


def stress() -> Path:
    """The program, where it was built."""
    return FOLDER / STRESS


def run(deadline: float) -> Iterator[Row]:
    """A row for each; without the shim no other part has anything to run."""
    shim = Row("shim_builds", "the shim builds with the cmake and g++ that are there")
    shim = programs.run_row(shim, ["bash", "-c", f"{_configure()} && {_make('gpushare')}"], {}, deadline)
    if shim.verdict == "true":
        install(FOLDER)
        make_site()
    yield shim
    stress = Row("stress_builds", "the stress builds, and needs no CUDA to build")
    bridge = Row("bridge_builds", "the bridge builds against this torch's headers")
    if shim.verdict != "true":
        stress.why = bridge.why = "the shim was not built"
        yield from (stress, bridge)
        return
    yield programs.run_row(stress, ["bash", "-c", _make(STRESS)], {}, deadline)
    yield programs.run_row(bridge, [sys.executable, "-c", BRIDGE], {}, deadline)


def _configure() -> str:
    generator = "" if shutil.which("make") else "-G Ninja"
    options = "-DGPUSHARE_TESTS=ON -DGPUSHARE_WERROR=OFF"  # the stress is among the tests
    return f"cmake {generator} -S '{programs.ROOT}' -B '{FOLDER}' {options}"


def _make(target: str) -> str:
    return f"cmake --build '{FOLDER}' --target {target} -j {os.cpu_count() or 1}"


def install(folder: Path) -> None:
    """As the package has it, beside the tree's Python files."""
    source = programs.SHIM.parent / "source"
    for part in ("bridge", "include"):
        shutil.copytree(programs.ROOT / "shim" / part, source / part, dirs_exist_ok=True)
    new = programs.SHIM.with_suffix(".new")
    shutil.copy(folder / programs.SHIM.name, new)
    os.replace(new, programs.SHIM)  # never written in place: a process may have it loaded


def make_site() -> None:
    """A folder for PYTHONPATH in which the tree's package lies as if it were installed.

    In the tree itself it would be taken for the script's own module, of which each job has one.
    """
    about = programs.SITE / "gpushare-0.dist-info"
    about.mkdir(parents=True, exist_ok=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: gpushare\nVersion: 0\n")
    package = programs.SITE / "gpushare"
    if not package.is_symlink():
        package.symlink_to(programs.ROOT / "gpushare")
