"""scenario.py STATE VALUE [MEET-DIRECTORY WHO OTHERS...]: set a state, meet the others, and print what is seen.

Without VALUE (`-`) it waits for the others to have ended and prints what a fresh script sees.
"""

import multiprocessing
import os
import pathlib
import sys
import threading
import time
import warnings

import states

if __name__ == "__main__":
    name, value, *meeting = sys.argv[1:]
    state = getattr(states, name)()


def meet(point):
    """Wait for the others; alone there is nobody to wait for."""
    if meeting:
        folder, who, *others = meeting
        pathlib.Path(folder, f"{point}-{who}").touch()
        for other in others:
            while not pathlib.Path(folder, f"{point}-{other}").exists():
                time.sleep(0.005)


def show(where, seen):
    print(where, seen, file=sys.__stdout__, flush=True)


def show_in_process(where, name):
    show(where, getattr(states, name)().get())


def main():
    if value == "-":
        if meeting:
            folder, _, *others = meeting
            while not all(pathlib.Path(folder, f"end-{other}").exists() for other in others):
                time.sleep(0.005)
            time.sleep(0.3)
        show("fresh", state.get())
        sys.exit()
    meet("begin")
    state.set(value)
    sys.modules["__main__"].value_was_set = True
    meet("set")
    show("main", state.get())
    meet("seen")
    thread = threading.Thread(target=lambda: show("thread", state.get()))
    thread.start()
    thread.join()
    if state.child == "exec":
        show("program", states.program_output(state))
    if state.child:
        sys.stdout.flush()
        # Python 3.12 says so where the process has threads: alone it counts those of libraries.
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        pid = os.fork()
        if pid == 0:
            show("fork", state.get())
            os._exit(0)
        os.waitpid(pid, 0)
    for method in getattr(state, "processes", ()):
        sys.stdout.flush()
        process = multiprocessing.get_context(method).Process(target=show_in_process, args=(method, name))
        process.start()
        process.join()
    meet("end")
    if hasattr(state, "restore"):
        state.restore()


if __name__ == "__main__":
    main()
