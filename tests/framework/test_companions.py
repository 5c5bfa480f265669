"""What companions see of a job that is known: in processes of their own, as the shim has one state."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from gpushare.framework.companions import Round, felt_of

LOOK = """
from gpushare.native import library
library.load()
import json, sys, time
from dataclasses import asdict
from gpushare.framework import companions as module
from gpushare.framework.companions import Companions
module._idle_s = lambda: 2 * time.monotonic()  # whatever else this machine does
def measured(iteration, bandwidth, **of):
    companions = Companions(bandwidth=bandwidth)
    looks = 1
    while not companions.look(**{"iteration_s": 0.02, "cores_busy": 1.0, "alike": True, **of}):
        iteration()
        looks += 1
    companions.close()
    print(json.dumps({**asdict(companions.felt), "looks": looks}))
def holds(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until: pass
"""
COMPUTES = "iteration = lambda: holds(0.02)\n"
SLEEPS = "iteration = lambda: time.sleep(0.02)\n"
BOTH = "def iteration():\n    holds(0.01)\n    time.sleep(0.01)\n"


def felt(iteration: str, bandwidth: bool = False, **of: Any) -> dict[str, Any]:
    code = LOOK + iteration + f"measured(iteration, {bandwidth}, **{of})"
    done = subprocess.run([sys.executable, "-P", "-c", code], text=True, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_gil_of_python_code_is_held_and_of_sleep_is_not() -> None:
    computes, sleeps = felt(COMPUTES), felt(SLEEPS)
    assert computes["gil_share"] > 0.8 and sleeps["gil_share"] < 0.3
    assert 0.25 < felt(BOTH)["gil_share"] < 0.75
    assert computes["sensitivity"] is None and computes["pressure"] is None
    assert 5 <= computes["looks"] <= 60, "a second of iterations"


def test_of_long_iterations_one_is_enough() -> None:
    found = felt("iteration = lambda: time.sleep(1.2)\n", True, iteration_s=3.0)
    assert found["looks"] == 2 and found["gil_share"] < 0.3 and found["sensitivity"] is None


def test_where_kinds_come_in_turns_bandwidth_is_not_measured() -> None:
    assert felt(SLEEPS, True, cores_busy=0.0, alike=False)["alone_s"] is None


def test_without_a_free_core_bandwidth_is_not_measured() -> None:
    assert felt(SLEEPS, True, cores_busy=len(os.sched_getaffinity(0)))["alone_s"] is None
    busy = "module._idle_s = lambda: 0.0\n"  # others keep them all busy
    assert felt(busy + SLEEPS, True, cores_busy=0.0)["alone_s"] is None


def test_an_iteration_is_looked_at_in_turns() -> None:
    found = felt(SLEEPS, True, cores_busy=0.0)
    assert 0.02 <= found["alone_s"] < 0.1 and found["looks"] > 20


INTERRUPTED = """
import threading
companions = Companions(bandwidth=True)
of = dict(iteration_s=0.02, cores_busy=1.0, alike=True)
before = threading.active_count()
for looks in range(int(sys.argv[1])):
    companions.look(**of)
    time.sleep(0.02)
companions.close()
time.sleep(0.2)
begin = time.process_time()
time.sleep(0.5)
print(json.dumps({"busy": time.process_time() - begin, "share": companions.felt.gil_share}))
"""


@pytest.mark.parametrize("looks", [1, 5, 70])
def test_a_job_that_ends_early_leaves_no_companion(looks: int) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", LOOK + INTERRUPTED, str(looks)],
        text=True,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["busy"] < 0.2
    assert (found["share"] is None) == (looks < 40), "what was not measured to its end is not known"


def test_the_median_of_turns_counts() -> None:
    usual, odd = Round(0.1, 0.12, 20e9, 16e9, 10e9), Round(0.1, 0.5, 20e9, 1e9, 19e9)
    assert felt_of([usual, odd, usual]) == (pytest.approx(0.2), pytest.approx(0.25))
    assert felt_of([Round(0.1, 0.09, 20e9, 21e9, 10e9)] * 2) == (0, 0), "noise"
    assert felt_of([Round(0.1, 0.12, 20e9, 16e9, 19e9)] * 2) is None, "bandwidth is no matter here"
