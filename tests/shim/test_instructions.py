"""Instructions of an allocation plus a free, counted by callgrind: unlike times they are the same on a busy machine.

The limits are a tenth above what was counted when they were set; who makes the path shorter lowers them.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

SHIM = Path(__file__).parent.parent.parent / "shim"
PAIRS = 2000
# bytes, most instructions
LIMITS = [(64, 610), (16 << 10, 620), (256 << 10, 1220), (4 << 20, 2450), (20 << 20, 2620), (64 << 20, 2150)]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("valgrind"):
        pytest.skip("valgrind, a package of the system, is not here; the README asks for no such package")
    folder = tmp_path_factory.mktemp("instructions")
    sources = [*(SHIM / "src").rglob("*.cpp"), SHIM / "tests" / "allocation_bench.cpp"]
    command = ["g++", "-std=c++20", "-O2", "-pthread", "-o", folder / "program", *sources]
    subprocess.run(command, check=True)
    return folder / "program"


def instructions(program: Path, size: int, pairs: int) -> int:
    collect = ["--toggle-collect=gs_alloc", "--toggle-collect=gs_free"]
    out = f"--callgrind-out-file={program.parent}/{size}-{pairs}"
    command = ["valgrind", "--tool=callgrind", *collect, out, program, "count", str(size), str(pairs)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    assert found, done.stderr
    return int(found[1])


@pytest.mark.parametrize(("size", "most"), LIMITS)
def test_instructions_of_a_pair(program: Path, size: int, most: int) -> None:
    each = (instructions(program, size, 2 * PAIRS) - instructions(program, size, PAIRS)) / PAIRS
    assert 0 < each <= most
