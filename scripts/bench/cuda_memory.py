"""The stream-aware pool on the fake CUDA driver: 10,000 random programs, and jobs in a steady state.

Give the folder of the shim's test programs, built with -DGPUSHARE_TESTS=ON and no sanitizer. No GPU is used, and no
time of this machine: the device's time is the fake driver's clock.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from common import write

PROGRAMS = 10_000
FOLDER = Path(sys.argv[1])


def lines_of(program: str, **environment: str) -> list[str]:
    done = subprocess.run(
        [FOLDER / program], check=True, capture_output=True, text=True, env=os.environ | environment
    )
    return done.stdout.splitlines()


said = [line.partition(": ") for line in lines_of("cuda_programs_test", GPUSHARE_PROGRAMS=str(PROGRAMS))]
said += [line.partition(": ") for line in lines_of("cuda_steady_test")]
table: list[list[Any]] = [["what", "figures"], *([about, figures] for about, _, figures in said)]
ratio = next(float(m[0]) for _, _, text in said if (m := re.search(r"[01]\.\d{4}", text)))
figures = {"programs": PROGRAMS, "device_time_over_best_waits": ratio, "said": [list(line) for line in said]}
write("cuda_memory", "python scripts/bench/cuda_memory.py build/tests-plain", figures, table)
