"""What lets many short processes on a GPU start sooner: imports are kept compiled, the driver stays awake."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Where a Python's packages have no compiled code beside them and can't be written, each process would compile all that
# it imports: most of the time of a short one.
COMPILED = Path(__file__).parent.parent / "build" / "gpu-check" / "pycache"


@contextmanager
def kept_awake() -> Iterator[None]:
    """Where persistence mode is off, the driver takes seconds to start for each process that finds no other there."""
    watching = None
    with suppress(OSError):
        command = ["nvidia-smi", "--loop=60"]
        watching = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        if watching:
            watching.kill()
            watching.wait()
