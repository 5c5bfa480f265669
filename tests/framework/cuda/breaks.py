"""A job's script: where nobody has done so yet the device fails from now on, for all; whoever waits for it is told.

One whose file is called `guarded` catches that, as launchers of training do, and is the first to end; `guarded-well`
takes it for no failure.
"""

import ctypes
import os
import sys
import time
from pathlib import Path

import torch

here, others = Path(sys.argv[1]), map(Path, sys.argv[2:])
kept = torch.empty(1 << 20, device="cuda")
here.touch()
for other in others:
    while not other.exists():
        time.sleep(0.01)
if not Path("broken").exists():
    Path("broken").touch()
    for entry in (b"cuEventSynchronize", b"cuStreamSynchronize", b"cuCtxSynchronize"):
        for nth in range(1, 200):
            ctypes.CDLL(None).fake_cuda_fail(
                entry, ctypes.c_uint64(nth), int(os.environ.get("BREAKS_WITH", 710))
            )
guarded = here.name.startswith("guarded")
time.sleep(0.1 if guarded else 0.5)
try:
    torch.cuda.synchronize()
except RuntimeError:
    if not guarded:
        raise
    sys.exit(0 if here.name == "guarded-well" else 1)
print("well")
