"""Which of torch's switches this torch lets us split, and what happens to one that it does not."""

import subprocess
import sys

COMMON = """
from gpushare.native import library, shim
library.load()
import torch
from gpushare.framework import switches
fresh = [s.get() for s in switches._SETTINGS if s.exists()]
"""
ALL_BUT_TWO = """
switches.install()
print([w.title for w in switches._watched])
print(fresh == [s.get() for s in switches._SETTINGS if s.exists()], switches._set_by_imports)
"""
NOT_SPLIT = """
import types
plain = types.SimpleNamespace(value=False, set=lambda v: setattr(plain, "value", v), get=lambda: plain.value)
print(switches._is_split(switches._Setting("plain", "set", "get", module=plain)), plain.value)
def refuse(value): raise RuntimeError("not on this machine")
plain.set = refuse
print(switches._is_split(switches._Setting("refused", "set", "get", module=plain)), plain.value)
"""
ACCOUNTS = """
def see(): return torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled()
def put(dtype, mode): torch.set_default_dtype(dtype); torch.use_deterministic_algorithms(mode)
with shim.switches_of(1):
    put(torch.float64, True)
    with shim.switches_of(2):
        put(torch.float16, False)
        with shim.switches_of(0):
            print(see())
    print(see())
with shim.switches_of(2):
    print(see())
with shim.switches_of(3):
    print(see())
"""


def run(code: str) -> list[str]:
    # Not from the sources, which have no library.
    done = subprocess.run(
        [sys.executable, "-P", "-c", COMMON + code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_all_but_two_are_split() -> None:
    assert run(ALL_BUT_TWO) == ["['anomaly detection', 'the fast path of attention']", "True {}"]


def test_one_that_is_not_split_is_noticed_and_put_back() -> None:
    assert run(NOT_SPLIT) == ["False False", "False False"]


def test_each_account_has_its_own_and_begins_anew() -> None:
    process = "(torch.float32, False)"
    assert run(ACCOUNTS) == [process, "(torch.float64, True)", "(torch.float16, False)", process]
