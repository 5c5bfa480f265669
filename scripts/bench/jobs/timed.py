"""Run a training script with a clock: when its first iteration began, and when it printed each of its lines.

The first iteration begins at the script's last `range` before its first line: a hook would cost something in each
iteration.

With several --out, as many threads of this process run the script, each in a namespace of its own and with nothing
else apart: not the default generator either, so that seeding and drawing in one disturbs the other.

With --beside it goes on after its first line when the scripts that write to those files have printed theirs: of
processes that start at once one may load its libraries much longer than another.

Written to each --out, as JSON: `begin_s` and `ends_s` of the monotonic clock, which is one for all processes, the
printed `lines`, and the thread's `page_faults` until each of them.
"""

import argparse
import json
import resource
import sys
import threading
import time
from pathlib import Path
from types import CodeType

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, action="append", required=True)
parser.add_argument("--beside", type=Path, action="append", default=[])
parser.add_argument("script", type=Path)
parser.add_argument("arguments", nargs=argparse.REMAINDER)
args = parser.parse_args()


def meet(out: Path) -> None:
    """Say that this script is on its way, and wait for those beside it."""
    out.with_suffix(".begun").touch()
    while not all(other.with_suffix(".begun").exists() for other in args.beside):
        time.sleep(0.005)


def run(code: CodeType, out: Path) -> None:
    begins: list[float] = []
    ends: list[float] = []
    lines: list[str] = []
    faults: list[int] = []

    def note_range(*bounds: int) -> range:
        if not lines:
            begins.append(time.monotonic())
        return range(*bounds)

    def note_line(line: str) -> None:
        ends.append(time.monotonic())
        lines.append(line)
        faults.append(resource.getrusage(resource.RUSAGE_THREAD).ru_minflt)
        if len(lines) == 1 and args.beside:
            meet(out)

    names = {"__name__": "__main__", "__file__": code.co_filename, "range": note_range, "print": note_line}
    exec(code, names)
    found = {"begin_s": begins[-1], "ends_s": ends, "lines": lines, "page_faults": faults}
    out.write_text(json.dumps(found))


code = compile(args.script.read_text(), str(args.script), "exec")
sys.argv = [str(args.script), *args.arguments]
sys.path[0] = str(args.script.resolve().parent)  # as python has it, for modules beside the script
if len(args.out) == 1:
    run(code, args.out[0])
else:
    threads = [threading.Thread(target=run, args=(code, out)) for out in args.out]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
