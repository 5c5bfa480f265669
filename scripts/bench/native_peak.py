"""Runs a script as python does, and tells at its end on stderr what torch's own allocator held at most.

python native_peak.py SCRIPT [ARGS]: the last line is `native RESERVED ALLOCATED`, in bytes; zeros without a GPU.
"""

import runpy
import sys
from pathlib import Path

import torch

script = sys.argv[1]
sys.argv[:] = sys.argv[1:]
sys.path[0] = str(Path(script).resolve().parent)
runpy.run_path(script, run_name="__main__")
used = torch.cuda.is_available() and torch.cuda.is_initialized()
peaks = (torch.cuda.max_memory_reserved(), torch.cuda.max_memory_allocated()) if used else (0, 0)
print("native", *peaks, file=sys.stderr)
