"""Output under gpushare against plain python, byte for byte: each example alone and in every pair.

The budget of a pair is below the sum of the peaks alone, so that memory passes between the jobs.
"""

import itertools
import shlex
import tempfile
from pathlib import Path
from typing import Any

from common import EXAMPLES, run_gpushare, run_plain, write

OPTIONS = {
    "digits_cnn": "--batch-size 128 --steps 30",
    "autoencoder": "--batch-size 256 --steps 40",
    "char_transformer": "--batch-size 32 --steps 20",
    "recurrent_lm": "--batch-size 64 --steps 20",
}
# One thread and one code path of MKL: without them plain python itself does not repeat its last bits.
FIXED = {"MKL_CBWR": "COMPATIBLE"}
GIB = 1 << 30


def command(name: str) -> str:
    return f"{EXAMPLES / name}.py {OPTIONS[name]}"


def compare(names: tuple[str, ...], budget: int, expected: dict[str, str]) -> tuple[dict[str, Any], bool]:
    """The summary of a run, and whether every byte of every job's stdout is as expected."""
    with tempfile.TemporaryDirectory() as logs:
        summary = run_gpushare([command(n) for n in names], budget, 1, "--log-dir", logs, extra=FIXED)
        outs = [(Path(logs) / f"{job['name']}.out").read_text() for job in summary["jobs"]]
    return summary, all(out == expected[n] for out, n in zip(outs, names, strict=True))


def main() -> None:
    expected = {name: run_plain(command(name), 1, FIXED)[1] for name in OPTIONS}
    again = {name: run_plain(command(name), 1, FIXED)[1] for name in OPTIONS}
    assert expected == again, "plain python does not repeat itself here: nothing can be compared"
    peaks: dict[str, int] = {}
    table: list[list[Any]] = [
        ["jobs", "lines equal", "budget / sum of peaks", "pool peak / budget", "waits", "pages passed"]
    ]
    figures = []
    pairs = itertools.combinations_with_replacement(OPTIONS, 2)
    for names in [*((n,) for n in OPTIONS), *pairs]:
        total = sum(peaks.get(n, 0) for n in names)
        largest, rest = max(peaks.get(n, 0) for n in names), min(peaks.get(n, 0) for n in names)
        budget = GIB if len(names) == 1 else max(int(0.75 * total), largest + int(0.35 * rest) + (8 << 20))
        summary, equal = compare(names, budget, expected)
        if len(names) == 1:
            peaks[names[0]] = total = summary["pool_peak_bytes"]
        waits = sum(j["memory_waits"] for j in summary["jobs"])
        lines = sum(len(expected[n].splitlines()) for n in names)
        table.append(
            [
                " + ".join(names),
                f"all {lines}" if equal else "NO",
                f"{budget / total:.2f}",
                f"{summary['pool_peak_bytes'] / budget:.2f}",
                waits,
                summary["pages_changed_owner"],
            ]
        )
        figures.append({"jobs": names, "equal": equal, "budget_bytes": budget, "waits": waits})
    write("equality", shlex.join(["python", "scripts/bench/equality.py"]), figures, table)


main()
