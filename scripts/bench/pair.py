"""Two copies of a job whose activations dominate, side by side at budgets below two solo peaks.

Time of the pair over the time of the same two one after the other, each under gpushare. The serial runs come
before and after the pairs (A B B B A), profiling and start-up counted on both sides; with `--repeats` again and
again, and the ratio is that of the means. Beside it plain python, and plain python with glibc told to keep its pages.
"""

import argparse
import shlex
import sys
from typing import Any

from common import EXAMPLES, JOBS, KEEP_PAGES, ROOT, profile, run_gpushare, run_plain, write

SCRIPTS = {"deep_cnn": JOBS / "deep_cnn.py", "digits_cnn": EXAMPLES / "digits_cnn.py"}
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--job", choices=SCRIPTS, default="deep_cnn")
parser.add_argument("--options", default="", help="more arguments of the job")
parser.add_argument("--threads", type=int, default=1, help="intra-op threads of each job; 0: torch's default")
parser.add_argument("--steps", type=int, default=60)
parser.add_argument("--budgets", default="1.3,1.1,1.05", help="in solo peaks")
parser.add_argument("--repeats", type=int, default=1)
parser.add_argument("--name", default="pair")
parser.add_argument("--plain", action="store_true", help="measure plain python too")
args = parser.parse_args()

threads = args.threads or None
job = f"{SCRIPTS[args.job]} --steps {args.steps} {args.options}".strip()
peak = profile(job, threads)["peak_held_bytes"]
budgets = [float(b) for b in args.budgets.split(",")]


def serial() -> float:
    budget = int(peak * max(budgets))
    return sum(run_gpushare([job], budget, threads)["wall_s"] for _ in range(2))


def pair(factor: float) -> dict[str, Any]:
    return {"budget": factor, **run_gpushare([job, job], int(peak * factor), threads, sample=True)}


serial_s = [serial()]
runs: list[list[dict[str, Any]]] = []
for _ in range(args.repeats):
    runs.append([pair(b) for b in budgets])
    serial_s.append(serial())
pairs = [p for run in runs for p in run]
plain = {}
if args.plain:
    plain["plain"] = 2 * run_plain(job, threads)[0]
    plain["plain, pages kept"] = 2 * run_plain(job, threads, KEEP_PAGES)[0]


def row(p: dict[str, Any]) -> list[Any]:
    iterations = sum(j["iterations"] for j in p["jobs"])
    shifts = [j["time_shift_s"] for j in p["jobs"]]
    forecasts = [j["predicted_time_shift_s"] for j in p["jobs"]]
    return [
        p["budget"],
        f"{p['wall_s']:.1f}",
        f"{p['wall_s'] / mean_serial:.3f}",
        f"{p['pool_peak_bytes'] / peak:.3f}",
        f"{p['pool_rss_bytes'] / peak:.3f}",
        f"{p['overlap_s'] / p['eligible_s']:.2f}",
        f"{p['pages_changed_owner'] / iterations:.0f}",
        " ".join(f"{f or 0:.2f}/{s or 0:.2f}" for f, s in zip(forecasts, shifts, strict=True)),
        p["python_grants"],
    ]


mean_serial = sum(serial_s) / len(serial_s)
heading = ["budget (solo peaks)", "time, s", "over serial", "pool peak (solo peaks)", "pool Rss (solo peaks)"]
heading += ["both advance", "pages passed/iteration", "shift forecast/measured, s", "Python grants"]
table: list[list[Any]] = [heading, *map(row, pairs)]
blank = ["-"] * 6
table.append(["serial, under gpushare", " ".join(f"{s:.1f}" for s in serial_s), "1", *blank])
if args.repeats > 1:
    for budget, again in zip(budgets, zip(*runs, strict=True), strict=True):
        mean_s = sum(p["wall_s"] for p in again) / args.repeats
        table.append([f"mean at {budget}", f"{mean_s:.1f}", f"{mean_s / mean_serial:.3f}", *blank])
table += [[f"serial, {k}", f"{s:.1f}", f"{s / mean_serial:.3f}", *blank] for k, s in plain.items()]
figures = {"solo_peak_bytes": peak, "serial_s": serial_s, "pairs": pairs, **plain}
for p in pairs:
    for j in p["jobs"]:
        j["command"] = j["command"].replace(f"{ROOT}/", "")
write(args.name, shlex.join(["python", "scripts/bench/pair.py", *sys.argv[1:]]), figures, table)
