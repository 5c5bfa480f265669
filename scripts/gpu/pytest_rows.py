"""A plugin of pytest, `-p gpu.pytest_rows`: a JSON line for each test that has ended, in the file GPU_CHECK_ROWS."""

import json
import os
from typing import Any

FILE = "GPU_CHECK_ROWS"
MOST = 1 << 16  # characters of why a test fails: it may have stacks and logs in it


def _tell(**what: Any) -> None:
    with open(os.environ[FILE], "a") as rows:
        rows.write(json.dumps(what) + "\n")


def pytest_collectreport(report: Any) -> None:
    if report.failed:
        _tell(test=report.nodeid, outcome="failed", seconds=0.0, why=str(report.longrepr)[-MOST:])


def pytest_runtest_logreport(report: Any) -> None:
    """A skip or an error in the set-up has no call; a failing tear-down comes after one."""
    if report.when != "call" and report.passed:
        return
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr or "")
    _tell(test=report.nodeid, outcome=report.outcome, seconds=report.duration, why=why[-MOST:])
