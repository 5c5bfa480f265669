"""Median time of an allocation plus a free: by the heap, in eight threads of eight jobs, and of whole extents.

Beside the heap's, glibc's posix_memalign and free of the same sizes. Give the path of `allocation_bench`, built with
-DGPUSHARE_TESTS=ON and no sanitizer.
"""

import subprocess
import sys
from typing import Any

from common import write


def measure(*part: str) -> list[list[float]]:
    done = subprocess.run([sys.argv[1], *part], check=True, capture_output=True, text=True)
    return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]


heap, threads = measure("heap"), measure("threads", "8")
extents = {live: measure("extents", str(live))[0][1] for live in (1000, 10_000, 100_000)}
table: list[list[Any]] = [["what", "gpushare, ns", "glibc, ns", "ratio", "8 threads of 8 jobs, ns"]]
for (size, ours, glibc), (_, shared) in zip(heap, threads, strict=True):
    table.append([f"{int(size)} bytes", ours, glibc, f"{ours / glibc:.2f}", shared])
table += [[f"an extent, {live} others live", ours, "-", "-", "-"] for live, ours in extents.items()]
figures = {"heap": heap, "threads": threads, "extents": extents}
write("allocation", "python scripts/bench/allocation.py build/tests-plain/allocation_bench", figures, table)
