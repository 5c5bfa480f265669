"""The host's part of an allocation on a GPU: the bridge against torch's own caching allocator, with no GPU.

    GPUSHARE_CUDA_PYTHON=/path/to/python python scripts/bench/cuda_allocation.py

with an interpreter whose torch is built for CUDA, and click, rich and psutil beside it. The driver is the fake one and
the CUDA runtime stand-ins, for both: what is compared is what the CPU does, and nothing is said of a GPU. The fake
driver's own time is in it: torch's allocator calls the driver for none of these blocks, the bridge where a batch of
freed memory is full, for events; they do not pass before the loop of a size is over, so they are not used again.

Each size by `torch.empty` and `del`, and by `torch.cuda.caching_allocator_alloc` (raw), in the same loops of the same
script, in plain python and in a job, A B B A. `python` is the loop with a tensor of no bytes, which no allocator is
asked for.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import JOBS, ROOT, add_output_options, conclude, environment
from gpu_rows.allocation import FIXED_SIZES, figures_of

import gpushare

sys.path.append(str(ROOT / "tests" / "framework" / "cuda"))
import stand_ins

BUDGET = 800 << 20
PYTHON = os.environ.get("GPUSHARE_CUDA_PYTHON")

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--pairs", type=int, default=3, help="A B B A, so many times")
parser.add_argument("--repeats", type=int, default=2000, help="of a size, in a round")
add_output_options(parser, "cuda_allocation")
args = parser.parse_args()
if args.estimate:
    print(f"this takes about {20 + 20 * args.pairs} seconds")
    sys.exit()
if not PYTHON:
    sys.exit("GPUSHARE_CUDA_PYTHON must name an interpreter whose torch is built for CUDA")


def told(command: list[str], folder: Path, runtime: Path) -> dict[str, Any]:
    """What the command's script writes, in a home of its own; `{out}` in the command stands for the file."""
    with tempfile.TemporaryDirectory() as name:
        home, out = Path(name), Path(name) / "out.json"
        (home / "cache" / "gpushare").mkdir(parents=True)
        (home / "cache" / "gpushare" / "bridge").symlink_to(folder)
        env = environment(1, home, {"LD_PRELOAD": str(runtime), "PYTHONPATH": str(folder)}, gpus=True)
        started = [str(PYTHON), "-P", *(word.replace("{out}", str(out)) for word in command)]
        done = subprocess.run(started, env=env, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{shlex.join(started)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        found: dict[str, Any] = json.loads(out.read_text())
    return found


def runs(script: list[str], folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """In plain python, and in a job."""
    runtime = stand_ins.build(str(PYTHON), folder, "-O2").runtime
    (folder / "gpushare").symlink_to(Path(gpushare.__file__).parent)  # for an interpreter that has none
    options = ["--device", "cuda", "--budget", str(BUDGET), "--no-live"]
    job = ["-m", "gpushare", "run", shlex.join(script), *options]
    told(job, folder, runtime)  # compiles the bridge
    found: tuple[list[dict[str, Any]], list[dict[str, Any]]] = [], []
    for which in (0, 1, 1, 0) * args.pairs:
        found[which].append(told((script, job)[which], folder, runtime))
    return found


script = [str(JOBS / "allocations.py"), "--device", "cuda", "--model-device", "cpu", "--out", "{out}"]
script += ["--repeats", str(args.repeats), "--sizes", *map(str, FIXED_SIZES)]
with tempfile.TemporaryDirectory() as name:
    figures = figures_of(*runs(script, Path(name)))
columns = {
    "python, ns": "python_ns",
    "in a job": "gpushare python_ns",
    "with torch's own, ns": "empty plain_ns",
    "gpushare": "empty gpushare_ns",
    "of the whole": "empty over_plain",
    "of what it adds": "own_over_plain",
    "raw, of the whole": "raw over_plain",
}
table: list[list[Any]] = [["bytes", *columns]]
for size in FIXED_SIZES:
    values = [figures.get(f"{size} {of}", float("nan")) for of in columns.values()]
    table.append([size, *(f"{v:.0f}" if v > 10 else f"{v:.2f}" for v in values)])
asked = "import platform, torch; print(f'python {platform.python_version()}, torch {torch.__version__}')"
of = subprocess.run([PYTHON, "-c", asked], check=True, capture_output=True, text=True).stdout.strip()
table[0][0] = f"bytes ({of})"
for call in ("clock", "device"):
    both = [figures[f"{call} {who}_ns"] for who in ("plain", "gpushare")]
    table.append([f"{call}, a call", *(f"{ns:.0f}" for ns in both), *["-"] * (len(columns) - 2)])
conclude(args, {"interpreter": of, **figures}, table)
