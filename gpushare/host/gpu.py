"""Which GPU the host is to see. Before anything loads the driver, which reads the environment once."""

from __future__ import annotations

import os

from gpushare.isolation.environment import ALLOCATOR_SETTINGS

VISIBLE = "CUDA_VISIBLE_DEVICES"
# Streams share so many queues to the device (8, unless it is said; 32 at most), and what waits in one keeps back what
# is behind it: CUDA C++ Programming Guide, environment variables. Here jobs' streams wait for each other's memory.
QUEUES, MOST_QUEUES = "CUDA_DEVICE_MAX_CONNECTIONS", "32"


def choose(device: str) -> int | None:
    """Hide all but the named one (`cuda:N`, N as the person's own environment counts); None for the CPU.

    Returns its index from now on. Jobs see one device, as it does.

    :raises ValueError: the environment leaves no such GPU to choose.
    """
    kind, _, number = device.partition(":")
    if kind != "cuda":
        return None
    if QUEUES not in os.environ:
        os.putenv(QUEUES, MOST_QUEUES)  # for the driver, and not for scripts to see
    for name in ALLOCATOR_SETTINGS:
        if name in os.environ:
            _set_for_torch(name, os.environ[name])
    index = int(number or 0)
    if (seen := os.environ.get(VISIBLE)) is None:
        os.environ[VISIBLE] = str(index)
        return 0
    names = [name.strip() for name in seen.split(",") if name.strip()]
    if index >= len(names):
        raise ValueError(f"--device {device}: {VISIBLE}={seen!r} leaves {len(names)} GPUs to choose from")
    os.environ[VISIBLE] = names[index]
    return 0


def _set_for_torch(name: str, settings: str) -> None:
    """Without the `backend`, which is the pool whatever was asked for; scripts go on to see what was set."""
    parts = settings.split(",")
    kept = [part for part in parts if part.partition(":")[0].strip() != "backend"]
    if kept:
        os.putenv(name, ",".join(kept))
    else:
        os.unsetenv(name)
