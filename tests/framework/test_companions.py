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
from gpushare.framework.companions import Companions
def measured(iteration, bandwidth):
    companions = Companions(bandwidth=bandwidth)
    looks = 1
    while not companions.look(1.0):
        iteration()
        looks += 1
    companions.close()
    print(json.dumps({**asdict(companions.felt), "looks": looks}))
"""
COMPUTES = """
def iteration():
    until = time.monotonic() + 0.02
    while time.monotonic() < until: pass
"""
SLEEPS = "iteration = lambda: time.sleep(0.02)\n"


def felt(iteration: str, bandwidth: bool = False) -> dict[str, Any]:
    code = LOOK + iteration + f"measured(iteration, {bandwidth})"
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_gil_of_python_code_is_held_and_of_sleep_is_not() -> None:
    computes, sleeps = felt(COMPUTES), felt(SLEEPS)
    assert computes["gil_share"] > 0.8 and sleeps["gil_share"] < 0.3
    assert computes["sensitivity"] is None and computes["pressure"] is None
    assert 5 <= computes["looks"] <= 60, "a second of iterations"


def test_it_takes_a_second_of_long_iterations() -> None:
    slow = "iteration = lambda: time.sleep(0.3)\n"
    assert felt(slow)["looks"] == 5  # four that fill a second, and the one that began it


def test_who_sleeps_feels_nothing_and_does_nothing() -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is no core for a companion")
    found = felt(SLEEPS, bandwidth=True)
    if found["pressure"] is None:
        pytest.skip("two threads that copy memory do not slow each other down here")
    assert 0 <= found["sensitivity"] < 1 and found["pressure"] >= 0
    assert 0.02 <= found["alone_s"] < 0.1


def test_the_median_of_turns_counts() -> None:
    usual, odd = Round(0.1, 0.12, 20e9, 16e9, 10e9), Round(0.1, 0.5, 20e9, 1e9, 19e9)
    assert felt_of([usual, odd, usual]) == (pytest.approx(0.2), pytest.approx(0.25))
    assert felt_of([Round(0.1, 0.09, 20e9, 21e9, 10e9)] * 2) == (0, 0), "noise"
    assert felt_of([Round(0.1, 0.12, 20e9, 16e9, 19e9)] * 2) is None, "bandwidth is no matter here"
