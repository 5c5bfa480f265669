"""The parts of a program over the allocator: each is tried, and what failed is told."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "cuda"
PARTS = """
import gc, weakref
from tries import Tries
class Kept: pass
kept = Kept()
left = weakref.ref(kept)
def holds():
    mine = globals().pop("kept")
    assert not mine, "the moon fell"
def is_let_go():
    gc.collect()
    assert left() is None
tries = Tries()
if {fails}:
    tries.part("holds", holds)
    tries.part("is let go", is_let_go)
tries.part("last", lambda: print("last is tried"))
tries.end()
"""


def ended(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], cwd=HERE, capture_output=True, text=True)


def test_one_that_fails_is_told_and_leaves_the_others() -> None:
    done = ended(PARTS.format(fails=True))
    assert (done.returncode, done.stdout) == (1, "last is tried\n")
    assert "holds failed:\nTraceback" in done.stderr and "AssertionError: the moon fell" in done.stderr
    assert done.stderr.splitlines()[-1] == "failed: holds"


def test_all_that_are_well_end_with_ok() -> None:
    done = ended(PARTS.format(fails=False))
    assert (done.returncode, done.stdout, done.stderr) == (0, "last is tried\nok\n", "")


@pytest.mark.parametrize(
    ("told", "plain", "goes_on"),
    [
        ([], False, True),
        (["the bridge was built without headers of CUDA's libraries"], False, True),
        (["the allocator's bridge to torch 2 can't be built: there is no nvcc"], False, False),
        (["it can't be built: there is no C++ compiler; cudnn.benchmark is held off"], True, True),
        ([], True, False),
    ],
)
def test_only_without_the_allocator_there_is_nothing_to_try(
    told: list[str], plain: bool, goes_on: bool
) -> None:
    done = ended(f"from tries import allocator_is_there\nallocator_is_there({told!r}, {plain})")
    assert (done.returncode == 0) is goes_on, done.stderr
    assert all(f"told: {note}" in done.stderr for note in told)


def test_what_is_said_without_the_bridge_is_what_is_looked_for() -> None:
    said = (HERE.parent.parent.parent / "gpushare" / "framework" / "cuda_bridge.py").read_text()
    text = (HERE / "tries.py").read_text()
    assert "can't be built" in said and 'NO_BRIDGE = "can\'t be built"' in text
    assert "allocator_is_there(told, PLAIN)" in (HERE / "tensors.py").read_text()
