"""What the results say of the machine: GPU, driver, torch with its build."""

import json
import os
import subprocess
import sys
from typing import Any

from common import ROOT

LIMIT_S = 60.0


def machine() -> dict[str, Any]:
    """Asked by the check's package, in a process: beside the benchmark's script `gpu` is that script."""
    command = [sys.executable, "-P", "-m", "gpu.machine", "--glance"]
    paths = os.pathsep.join(filter(None, [str(ROOT / "scripts"), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "PYTHONPATH": paths}
    try:
        done = subprocess.run(command, env=env, check=True, capture_output=True, text=True, timeout=LIMIT_S)
    except (OSError, subprocess.SubprocessError) as error:
        return {"gpu": f"could not be asked: {error}"}
    found: dict[str, Any] = json.loads(done.stdout)
    return found
