"""Bars in bars, with what the cursor does between their lines, and lines above them, by a word from the command line."""

import sys
import time

from tqdm import tqdm

options = {"file": sys.stdout, "mininterval": 0, "miniters": 1, "bar_format": "{desc} {n}/{total}"}
for epoch in tqdm(range(3), desc="epochs", **options):
    for _ in tqdm(range(10), desc="steps", leave=False, **options):
        time.sleep(0.02)
    tqdm.write(f"{sys.argv[1]}: epoch {epoch}", file=sys.stdout)
