"""Scripts that catch what interrupts them, and go on."""

import json
from pathlib import Path

import pytest
from conftest import TRAIN, Run

MIB = 1 << 20
HANDLERS = {
    "ctrl-c": "signal.SIGINT",
    "a handler's": "signal.SIGTERM",
}
CATCHES = (
    """
import os, signal, time

class Stop(BaseException):
    pass

def stop(number, frame):
    raise Stop(number)

signal.signal(signal.SIGTERM, stop)
"""
    + TRAIN.replace("import sys, torch\n", "import sys, torch\ntorch.manual_seed(1)\n")
    + """
    if step == 5:
        try:
            os.kill(os.getpid(), {number})
            for _ in range(2000):  # each an occasion for it to come
                time.sleep(0.01)
        except (KeyboardInterrupt, Stop) as error:
            print("caught", type(error).__name__, error.args)
"""
)


@pytest.mark.parametrize("number", HANDLERS.values(), ids=list(HANDLERS))
def test_who_catches_an_interrupt_is_scheduled_as_before(
    gpushare: Run, plain: Run, tmp_path: Path, number: str
) -> None:
    (tmp_path / "wide.py").write_text(CATCHES.format(rows=12_000, number=number))
    expected = plain("wide.py", "40").stdout
    assert expected.count("caught") == 1
    output = ("--summary", "s.json", "--log-dir", "logs", "--policy", "greedy")
    done = gpushare("run", "wide.py 40", "wide.py 40", "--budget", "110MiB", *output)
    assert done.returncode == 0, done.stderr
    for name in ("wide", "wide-2"):
        assert (tmp_path / "logs" / f"{name}.out").read_text() == expected
    found = json.loads((tmp_path / "s.json").read_text())
    assert found["pool_peak_bytes"] <= 110 * MIB
    assert found["solo_peaks_sum_bytes"] > 110 * MIB  # beside each other they have to wait
    assert any(job["memory_waits"] for job in found["jobs"])  # and nobody got an error instead
