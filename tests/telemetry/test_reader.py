import os
import struct

from gpushare.launcher.results import JobResult
from gpushare.telemetry import layout
from gpushare.telemetry.reader import Telemetry, Wake
from gpushare.views.figures import build_summary


def memory(wakes: list[Wake], count: int) -> int:
    """Telemetry in which `count` wake-ups have been, of which the ring has the latest."""
    words = [word for wake in wakes for word in wake]
    descriptor = os.memfd_create("telemetry")
    os.ftruncate(descriptor, layout.TOTAL_BYTES)
    os.pwrite(descriptor, struct.pack("<Q", count), 8 * layout.HEADER.index("wakes"))
    os.pwrite(descriptor, struct.pack(f"<{len(words)}Q", *words), layout.WAKES_AT)
    return descriptor


def test_wake_ups_are_read_and_summed_up() -> None:
    found = [Wake(n * 1000, n * 10) for n in range(1, 101)]
    telemetry = Telemetry(memory(found, 100))
    assert telemetry.wakes() == found
    summary = build_summary(telemetry, [JobResult("a", "a.py")], policy="zico", budget_bytes=1, duration_s=1)
    wakes = summary["wakes"]
    assert wakes["count"] == 100
    assert wakes["median_s"] == 51e-6 and wakes["p99_s"] == 100e-6 and wakes["longest_s"] == 100e-6
    assert wakes["gil"] == {"median_s": 510e-9, "p99_s": 1e-6, "longest_s": 1e-6}


def test_an_overwritten_ring_has_its_length() -> None:
    full = [Wake(7, 1)] * layout.WAKE_ENTRIES
    assert len(Telemetry(memory(full, 10 * layout.WAKE_ENTRIES)).wakes()) == layout.WAKE_ENTRIES


def test_no_wake_ups() -> None:
    assert Telemetry(memory([], 0)).wakes() == []
