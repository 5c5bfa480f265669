"""What machine this is: `python -m gpu.machine` prints it as JSON, in a process that leaves no context behind; with
`--glance` what is known without torch's import."""

import datetime
import importlib.util
import json
import os
import platform
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from quick_starts import COMPILED

LIMIT_S = 180.0


def driver_version() -> str | None:
    """As NVML says, else as nvidia-smi says, else None."""
    with suppress(Exception):
        import pynvml

        pynvml.nvmlInit()
        return str(pynvml.nvmlSystemGetDriverVersion())
    with suppress(OSError, subprocess.SubprocessError, IndexError):
        asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        return subprocess.run(asked, capture_output=True, text=True, timeout=30).stdout.split()[0]
    return None


def cards() -> str:
    """The GPUs, as the driver's tool names them; why not, where it does not."""
    asked = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"]
    try:
        done = subprocess.run(asked, check=True, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.SubprocessError) as error:
        return f"not known: {error}"
    return "; ".join(line.strip() for line in done.stdout.splitlines())


def installed_torch() -> dict[str, Any]:
    """`torch` with its build, and `cuda`, the version that it is built for, without importing it."""
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        return {}
    said: dict[str, Any] = {}
    with suppress(OSError):
        exec(Path(found.origin).with_name("version.py").read_text(), said)
    return {"torch": str(said.get("__version__")), "cuda": said.get("cuda")}


def glance() -> dict[str, Any]:
    """What can be said of a GPU's machine in little time."""
    return {"gpu": cards(), "driver": driver_version(), **installed_torch()}


def describe() -> dict[str, Any]:
    """The header of the results; `refused` says why nothing can be checked here, or is None."""
    header: dict[str, Any] = {
        "gpu": None,
        "driver": driver_version(),
        "cuda": None,
        "torch": None,
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "kernel": platform.release(),
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "refused": None,
    }
    try:
        import torch
    except ImportError as error:
        return {**header, "refused": f"torch can't be imported by {sys.executable}: {error}"}
    header |= {"torch": torch.__version__, "cuda": torch.version.cuda}
    if torch.version.cuda is None:
        return {**header, "refused": f"torch {torch.__version__} is built without CUDA"}
    if not torch.cuda.is_available():
        return {**header, "refused": f"torch {torch.__version__} finds no CUDA device"}
    device = torch.cuda.get_device_properties(0)
    header["gpu"] = f"{device.name}, {device.total_memory / 2**30:.1f} GiB"
    header["multiprocessors"] = device.multi_processor_count
    header["cudnn"] = torch.backends.cudnn.version()
    return header


def asked(limit_s: float = LIMIT_S) -> dict[str, Any]:
    """`describe()` of a process of its own, which may not hang for ever."""
    paths = [str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    env["PYTHONPYCACHEPREFIX"] = str(COMPILED)
    command = [sys.executable, "-m", "gpu.machine"]
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        return {"refused": f"asking torch for its CUDA device took more than {limit_s:.0f} s"}
    if done.returncode:
        return {"refused": f"asking torch for its CUDA device failed: {done.stderr.strip()[-300:]}"}
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


if __name__ == "__main__":
    print(json.dumps(glance() if "--glance" in sys.argv else describe()))
