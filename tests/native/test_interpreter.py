"""What the shim does in the place of the interpreter, and of libraries that it calls."""

import subprocess
import sys
from pathlib import Path

LIBRARY = """
#include <pthread.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
extern "C" int take() { return pthread_mutex_lock(&mutex); }
extern "C" int give() { return pthread_mutex_unlock(&mutex); }
"""
# Calls by PyDLL are made with the GIL in hand.
PROGRAM = """
import ctypes, sys, threading, time
from gpushare.native import interpreter, library, shim
library.load()
sizes = {"budget_bytes": 32 << 20, "page_bytes": 2 << 20, "region_bytes": 4 << 20}
shim.start(**sizes, policy="zico")
print(interpreter.watch_locks_of("libof_nobody."))
locks = ctypes.PyDLL(sys.argv[1])
print(interpreter.watch_locks_of("libtakes_a_mutex."))
taken = threading.Event()

def hold():
    locks.take()
    taken.set()
    time.sleep(0.2)
    locks.give()

holder = threading.Thread(target=hold)
holder.start()
taken.wait()
account = shim.job_begin(0)
shim.thread_enter(account, 0)
print(locks.take(), locks.give())
holder.join()
"""


def test_who_waits_for_a_librarys_mutex_gives_the_gil_up(tmp_path: Path) -> None:
    source, built = tmp_path / "locks.cpp", tmp_path / "libtakes_a_mutex.so"
    source.write_text(LIBRARY)
    subprocess.run(["g++", "-shared", "-fPIC", "-o", built, source], check=True)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, built],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split() == ["False", "True", "0", "0"], done.stderr
