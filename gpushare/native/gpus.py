"""What the CUDA driver says of the GPUs.

It is asked in a process of its own, since a context takes memory and a driver may hang.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from dataclasses import asdict, dataclass

LIBRARY = "libcuda.so.1"
LIMIT_S = 60.0
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*, cuda.h
_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE
# As the host is started: gpushare must not be looked for in the user's directory.
_START = "import sys; sys.path.pop(0); from gpushare.native import gpus; gpus.main(int(sys.argv[1]))"


@dataclass(frozen=True)
class Gpus:
    """`count` GPUs are visible, -1 if that is not known. The rest is of the one that was asked for, if it is there;
    memory in bytes, with a context on it. `problem` says why there is no more, in the driver's words."""

    count: int = -1
    name: str = ""
    capability: tuple[int, int] = (0, 0)
    free_bytes: int = 0
    total_bytes: int = 0
    problem: str | None = None


def ask(index: int) -> Gpus:
    """The driver's answers about GPU `index`, as the environment lets it count."""
    command = [sys.executable, "-c", _START, str(index)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return Gpus(problem=f"the driver did not answer within {LIMIT_S:.0f} s")
    try:
        told = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        return Gpus(problem=f"asking the driver failed: {last[0]}")
    return Gpus(**{**told, "capability": tuple(told["capability"])})


def main(index: int) -> None:
    """Print what `look` finds, as JSON."""
    print(json.dumps(asdict(look(index))))


def look(index: int) -> Gpus:
    """As `ask`, in this process, which has a context afterwards."""
    try:
        driver = ctypes.CDLL(LIBRARY)
    except OSError as error:
        return Gpus(problem=f"the CUDA driver can't be loaded: {error}")
    try:
        return _look(driver, index)
    except _DriverError as error:
        return Gpus(count=0 if error.result == _NO_DEVICE else -1, problem=str(error))


class _DriverError(Exception):
    def __init__(self, call: str, result: int, words: str) -> None:
        super().__init__(f"{call}: {words}")
        self.result = result


def _look(driver: ctypes.CDLL, index: int) -> Gpus:
    number, context = ctypes.c_int(), ctypes.c_void_p()
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    name = ctypes.create_string_buffer(256)
    _call(driver, "cuInit", 0)
    _call(driver, "cuDeviceGetCount", ctypes.byref(number))
    count = number.value
    if index >= count:
        return Gpus(count=count)
    _call(driver, "cuDeviceGet", ctypes.byref(number), index)
    device = number.value
    _call(driver, "cuDeviceGetName", name, len(name), device)
    capability = []
    for attribute in (_MAJOR, _MINOR):
        _call(driver, "cuDeviceGetAttribute", ctypes.byref(number), attribute, device)
        capability.append(number.value)
    _call(driver, "cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    _call(driver, "cuCtxSetCurrent", context)
    _call(driver, "cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    told = name.value.decode(errors="replace")
    return Gpus(count, told, (capability[0], capability[1]), free.value, total.value)


def _call(driver: ctypes.CDLL, name: str, *arguments: object) -> None:
    result = int(getattr(driver, name)(*arguments))
    if result == 0:
        return
    words = ctypes.c_char_p()
    driver.cuGetErrorString(result, ctypes.byref(words))
    said = words.value.decode(errors="replace") if words.value else f"error {result}"
    raise _DriverError(name, result, said)
