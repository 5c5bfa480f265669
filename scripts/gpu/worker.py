"""The process of one check: `python -m gpu.worker CHECK`, with CHECK as JSON.

It gets ready (libraries, imports), says so, and waits for a line on stdin: so the next check's imports run
while the one before it is measured. What it sees goes to its first stdout as JSON lines; whatever else is
printed goes to stderr.
"""

import ctypes
import faulthandler
import importlib
import json
import os
import signal
import sys
import traceback
from typing import Any

from gpu import libraries
from gpu.checks import CannotCheck, Seen


def end_with_parent() -> None:
    """A runner that is killed leaves no check behind that holds the device."""
    parent_death_signal = 1  # PR_SET_PDEATHSIG
    ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGKILL)


def main() -> None:
    end_with_parent()
    faulthandler.register(signal.SIGQUIT)  # where it hangs, into its log
    check = json.loads(sys.argv[1])
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def emit(message: dict[str, Any]) -> None:
        out.write(json.dumps(message, default=str) + "\n")

    try:
        for name in check["preload"]:
            libraries.load(name, ctypes.RTLD_GLOBAL)
        for name in check["imports"]:
            importlib.import_module(name)
        function = getattr(importlib.import_module(check["module"]), check["name"])
        emit({"ready": True})
        if sys.stdin.readline():
            function(Seen(emit))
            emit({"end": True})
    except CannotCheck as error:
        emit({"cannot": str(error)})
    except BaseException as error:
        traceback.print_exc()
        emit({"cannot": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"})
    out.flush()
    sys.stderr.flush()
    os._exit(0)  # what a check left behind (allocators, captures, spinning kernels) isn't worth a tidy end


main()
