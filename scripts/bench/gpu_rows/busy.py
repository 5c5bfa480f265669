"""How much of the time a GPU has a kernel, as NVML says: asked again and again while something runs."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

EVERY_S = 0.1
LASTS_S = 1.0  # what NVML says is of the last second, or less (nvmlDeviceGetUtilizationRates)
LEAST_SAMPLES = 10


@dataclass
class Samples:
    """`taken`: (when by time.monotonic(), part of the time), or `why` there are none."""

    taken: list[tuple[float, float]] = field(default_factory=list)
    why: str = ""

    def mean(self, begin_s: float, end_s: float) -> float | str:
        """The part of that time in which the device had a kernel; or why it is not known."""
        seen = [part for at, part in self.taken if begin_s + LASTS_S <= at <= end_s]
        if len(seen) >= LEAST_SAMPLES:
            return fmean(seen)
        return self.why or f"the steps took {end_s - begin_s:.1f} s, too little for NVML to see"


def handle(nvml: Any, number: int) -> Any:
    """Of the device that CUDA calls so, if it counts like NVML."""
    seen = os.environ.get("CUDA_VISIBLE_DEVICES")
    name = seen.split(",")[number].strip() if seen else str(number)
    if name.isdecimal():
        return nvml.nvmlDeviceGetHandleByIndex(int(name))
    return nvml.nvmlDeviceGetHandleByUUID(name)


@contextlib.contextmanager
def watched(device: str) -> Iterator[Samples]:
    """What is seen of the device meanwhile."""
    samples, ended = Samples(), threading.Event()
    thread = threading.Thread(target=_watch, args=(device, samples, ended), daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        ended.set()
        thread.join()


def _watch(device: str, samples: Samples, ended: threading.Event) -> None:
    if device == "cpu":
        samples.why = "only a GPU tells"
        return
    try:
        import pynvml
    except ImportError as error:
        samples.why = f"NVML can't be asked: {error}"
        return
    try:
        pynvml.nvmlInit()
        gpu = handle(pynvml, int(device.partition(":")[2] or 0))
        while not ended.wait(EVERY_S):
            part = pynvml.nvmlDeviceGetUtilizationRates(gpu).gpu / 100
            samples.taken.append((time.monotonic(), part))
    except (pynvml.NVMLError, LookupError) as error:
        samples.why = f"NVML does not tell: {type(error).__name__}: {error}"
