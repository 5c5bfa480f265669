"""Signals that scripts seldom handle, and ways to send one that are seldom taken."""

import _thread
import os
import signal
import subprocess
import threading
import time
import warnings

# From Python 3.12 on it is shown where the thread that interrupts has not quite ended, which is chance.
warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
caught = []


def note(number, frame):
    caught.append(signal.Signals(number).name)


def await_one(name):
    deadline = time.monotonic() + 10
    while name not in caught and time.monotonic() < deadline:
        time.sleep(0.01)
    print(name, name in caught)


for name in ("SIGCHLD", "SIGRTMIN", "SIGXCPU", "SIGVTALRM", "SIGPROF"):
    print(name, signal.signal(getattr(signal, name), note) == signal.SIG_DFL)
subprocess.run(["true"], check=True)
await_one("SIGCHLD")
for name in ("SIGRTMIN", "SIGXCPU"):
    subprocess.run(["sh", "-c", f"kill -{getattr(signal, name).value} $PPID"], check=True)
    await_one(name)
for name, timer in (("SIGVTALRM", signal.ITIMER_VIRTUAL), ("SIGPROF", signal.ITIMER_PROF)):
    signal.setitimer(timer, 0.02, 0.02)
    begin = time.process_time()
    while caught.count(name) < 2 and time.process_time() < begin + 20:
        pass
    signal.setitimer(timer, 0)
    await_one(name)

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
os.kill(os.getpid(), signal.SIGUSR1)
print(signal.sigwait({signal.SIGUSR1}).name)

for how in (
    lambda: signal.pthread_kill(threading.get_ident(), signal.SIGINT),
    _thread.interrupt_main,
    lambda: threading.Thread(target=_thread.interrupt_main).start(),
):
    try:
        how()
        time.sleep(10)
    except KeyboardInterrupt:
        print("interrupted")
_thread.interrupt_main(signal.SIGUSR2)  # nobody handles it
pid = os.fork()
if pid == 0:
    del caught[:]
    os.kill(os.getpid(), signal.SIGXCPU)
    time.sleep(0.01)
    print("child", caught, flush=True)
    os._exit(0)
os.waitpid(pid, 0)
signal.setitimer(signal.ITIMER_VIRTUAL, 30)  # left behind
