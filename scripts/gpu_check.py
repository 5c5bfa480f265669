"""Checks on a machine with an NVIDIA GPU what gpushare takes for granted there, and whether it works.

    python scripts/gpu_check.py --out DIR                      all of it, in less than ten minutes
    python scripts/gpu_check.py --jobs --stress --out DIR      some parts

Needs torch with CUDA, g++ and, but for the facts, cmake; for jobs, corpus, tests and benchmark click, rich and psutil,
for the tests pytest. No network and no installation. docs/gpu.md tells what the results mean.
Exit codes: 0 everything could be checked (true or false), 2 misuse or no GPU, 3 something could not be checked.
"""

import argparse
import math
import signal
import sys
import time
from pathlib import Path

import quick_starts
from gpu import machine, processes, whole
from gpu.parts import BUILD, PARTS, Given, Part

TOTAL_S = 570
NAMES = (BUILD.name, *(part.name for part in PARTS))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Check on a GPU what gpushare takes for granted, and whether it works. Without a part: all. "
        "Under a total the last part that runs gets what the others leave, whatever its own limit."
    )
    for part in PARTS:
        parser.add_argument(
            f"--{part.name}", action="store_true", help=f"{part.help} ({part.limit_s:.0f} s by default)"
        )
    parser.add_argument("--out", type=Path, metavar="DIR", help="where check.md and check.json are written")
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="of facts, jobs and corpus these rows alone"
    )
    parser.add_argument("--list", action="store_true", help="list what --only can choose, and end")
    parser.add_argument(
        "--limit",
        nargs="+",
        default=[],
        metavar="SECONDS|PART=SECONDS",
        help="for each part, or for one; no total then, unless --total says one",
    )
    parser.add_argument(
        "--total", type=float, metavar="SECONDS", help=f"for all together; {TOTAL_S} without --limit"
    )
    given = parser.parse_args()
    given.parts = [part for part in PARTS if getattr(given, part.name)] or list(PARTS)
    known = {name for part in given.parts for name, _ in part.listed()}
    if not known and (given.only or given.list):
        parser.error("--only and --list are about --facts, --jobs and --corpus")
    if not given.list and not given.out:
        parser.error("--out DIR is needed: results are written there after every check")
    given.limits = limits(parser, given.limit, given.parts)
    given.total = total(parser, given.total, bool(given.limit))
    unknown = sorted(set(given.only or ()) - known)
    if unknown:
        parser.error(f"no such check: {', '.join(unknown)}; --list shows them")
    return given


def limits(parser: argparse.ArgumentParser, asked: list[str], parts: list[Part]) -> dict[str, float]:
    """Seconds by part; what is said of one part goes before what is said of all."""
    every: dict[str, float] = {}
    own: dict[str, float] = {}
    for one in asked:
        name, _, seconds = one.rpartition("=")
        try:
            value = float(seconds)
        except ValueError:
            parser.error(f"--limit must be SECONDS or PART=SECONDS, but got {one}")
        if not value > 0:
            parser.error(f"--limit must be more than 0 seconds, but got {one}")
        if name and name not in NAMES:
            parser.error(f"--limit {one}: no such part; there are {', '.join(NAMES)}")
        if name:
            own[name] = value
        else:
            every = dict.fromkeys((part.name for part in parts), value)
    return {**every, **own}


def total(parser: argparse.ArgumentParser, asked: float | None, limited: bool) -> float:
    if asked is not None and not asked > 0:
        parser.error(f"--total must be more than 0 seconds, but got {asked:g}")
    return asked or (math.inf if limited else TOTAL_S)


def refuse(why: str) -> int:
    print(f"gpu_check: {why}", file=sys.stderr)
    print(
        "gpu_check needs an NVIDIA GPU with its driver, and a torch that is built for CUDA:\n"
        "  nvidia-smi                                                 must list the GPU\n"
        f"  {sys.executable} -c 'import torch; print(torch.cuda.is_available())'   must print True\n"
        "In a container, start it with the GPU (docker run --gpus all); else call this script with the\n"
        "python whose torch has CUDA.",
        file=sys.stderr,
    )
    return 2


def end_tidily(*_: object) -> None:
    """What has been started ends with us."""
    processes.kill_all()
    raise KeyboardInterrupt


def main() -> int:
    given = arguments()
    if given.list:
        chosen = Given(Path(), tuple(given.only or ()))
        for part in given.parts:
            for name, statement in part.listed():
                if chosen.wants(name):
                    print(f"{part.name}: {name}" + f"\n     {statement}" * bool(statement))
        return 0
    begin = time.monotonic()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end_tidily)
    limit_s = min(machine.LIMIT_S, given.total)
    print(f"asking torch for its CUDA device, within {limit_s:.0f} s", flush=True)
    header = machine.asked(limit_s)
    if why := header.pop("refused"):
        return refuse(why)
    told = Given(given.out, tuple(given.only or ()))
    left_s = given.total - (time.monotonic() - begin)
    with quick_starts.kept_awake():
        return 0 if whole.run(given.parts, header, told, given.limits, left_s) else 3


if __name__ == "__main__":
    sys.exit(main())
