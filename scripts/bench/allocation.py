"""Median time of an allocation plus a free that the heap serves, beside glibc's posix_memalign and free.

Give the path of `allocation_bench`, built with -DGPUSHARE_TESTS=ON and no sanitizer.
"""

import subprocess
import sys
from typing import Any

from common import write

lines = subprocess.run([sys.argv[1]], check=True, capture_output=True, text=True).stdout.splitlines()
rows = [[float(word) for word in line.split()] for line in lines]
table: list[list[Any]] = [["bytes", "gpushare, ns", "glibc, ns", "ratio"]]
table += [[int(size), ours, glibc, f"{ours / glibc:.2f}"] for size, ours, glibc in rows]
write("allocation", "python scripts/bench/allocation.py build/tests-plain/allocation_bench", rows, table)
