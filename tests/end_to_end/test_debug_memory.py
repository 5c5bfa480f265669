"""`--debug-memory`: a job that frees twice is told so, and the other computes as ever."""

import json
from pathlib import Path

import pytest
from conftest import Run

BAD = """
import ctypes, torch
library = ctypes.CDLL(None)
take, give = library._ZN3c109alloc_cpuEm, library._ZN3c108free_cpuEPv
take.restype, take.argtypes, give.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
address = take(100_000)
give(address); give(address)
"""


@pytest.mark.usefixtures("train")
@pytest.mark.parametrize("debug", [True, False])
def test_freed_twice(gpushare: Run, plain: Run, tmp_path: Path, debug: bool) -> None:
    good = "import torch\ntorch.manual_seed(1)\n" + (tmp_path / "train.py").read_text()
    (tmp_path / "train.py").write_text(good)
    (tmp_path / "bad.py").write_text(BAD + good)
    flags = ["--debug-memory"] if debug else []
    done = gpushare("run", "bad.py 6", "train.py 6", *flags, "--log-dir", "logs", "--summary", "s.json")
    assert done.returncode == 0, done.stderr
    for name in ("bad", "train"):
        assert (tmp_path / "logs" / f"{name}.out").read_text() == plain("train.py", "6").stdout
    bad, train = json.loads((tmp_path / "s.json").read_text())["jobs"]
    assert (bad["memory"]["bad_frees"], train["memory"]["bad_frees"]) == (1, 0)
    told = "bad free: bad freed 0x" in done.stderr and "a block of 100000 bytes of bad" in done.stderr
    assert told == debug, done.stderr
    assert "bad freed what was no block of memory, 1 times;" in done.stdout
