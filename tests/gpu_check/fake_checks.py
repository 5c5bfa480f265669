"""Checks that need no GPU, for the tests of the runner."""

import ctypes
import os
import subprocess
import sys
import time

from gpu.checks import CannotCheck, Seen, check


@check("True things are true.", rank=2, imports=())
def true_one(seen: Seen) -> None:
    print("this goes to the log, not into the results")
    seen.claim("it is so", True)
    seen.figure("cost_us", 1.25)


@check("False things are told with the claim that fails.", rank=2, imports=())
def false_one(seen: Seen) -> None:
    seen.claim("this holds", True)
    seen.claim("this | does not", False)


@check("A check that claims nothing is not true.", rank=2, imports=())
def empty_one(seen: Seen) -> None:
    seen.figure("cost_us", 2.0)


@check("Some things can't be checked.", rank=2, imports=())
def impossible_one(seen: Seen) -> None:
    raise CannotCheck("there is no moon")


@check("Errors in a check are told.", rank=2, imports=())
def raising_one(seen: Seen) -> None:
    seen.figure("before", 1)
    raise ValueError("something\nunforeseen")


@check("A crash loses nothing that came before it.", rank=2, imports=())
def crashing_one(seen: Seen) -> None:
    seen.figure("before", 1)
    print("near the end", flush=True)
    ctypes.string_at(0)


@check("A check that hangs is killed, with what it started.", rank=2, limit_s=1, imports=())
def hanging_one(seen: Seen) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    seen.figure("child", child.pid)
    seen.figure("process", os.getpid())
    time.sleep(600)


@check("A check may end its process.", rank=2, imports=())
def exiting_one(seen: Seen) -> None:
    seen.claim("so far so good", True)
    os._exit(7)


@check("A module that is not there is told.", rank=2, imports=("no_such_module_anywhere",))
def importing_one(seen: Seen) -> None:
    seen.claim("never reached", True)


@check("The valuable come first.", rank=1, imports=())
def valuable_one(seen: Seen) -> None:
    seen.claim("it is so", True)


@check("A library is built, and loaded where it is asked for.", rank=3, libraries=("driver",), imports=())
def library_one(seen: Seen) -> None:
    from gpu import libraries

    seen.claim("it is loaded", bool(libraries.load("driver").open_driver))
    seen.figure("compile_s", libraries.report("driver")["seconds"])


@check("What it measures bears nothing beside it.", rank=2, imports=(), quiet=True)
def quiet_one(seen: Seen) -> None:
    seen.claim("it is so", True)
    seen.figure("begun_s", time.monotonic())


@check("Some need long to get ready.", rank=2, imports=("slow_import",))
def slow_one(seen: Seen) -> None:
    import slow_import

    seen.claim("it is so", True)
    seen.figure("imported_s", slow_import.IMPORTED_S)
