"""Held at peak over live at peak of each example, from `gpushare profile --json`."""

from typing import Any

from common import EXAMPLES, profile, write

JOBS = {
    "digits_cnn": "--batch-size 430",
    "autoencoder": "--batch-size 256",
    "char_transformer": "--batch-size 64",
    "recurrent_lm": "--batch-size 128",
}

table: list[list[Any]] = [
    ["example", "held, MiB", "live, MiB", "held/live", "held - 1.15 live, MiB (limit 8)"]
]
figures = {}
for name, options in JOBS.items():
    found = profile(f"{EXAMPLES / name}.py {options}", 1)
    held, live = found["peak_held_bytes"] / 2**20, found["peak_live_bytes"] / 2**20
    figures[name] = {"held_mib": held, "live_mib": live}
    table.append([name, f"{held:.1f}", f"{live:.1f}", f"{held / live:.3f}", f"{held - 1.15 * live:.1f}"])
write("fragmentation", "python scripts/bench/fragmentation.py", figures, table)
