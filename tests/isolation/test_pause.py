"""`signal.pause` ends when a handler of the job has run, though that runs in another thread."""

from pathlib import Path

from conftest import Run

PAUSES = """
import os, signal, threading
signal.signal(signal.SIGALRM, lambda *_: print('alarm'))
signal.alarm(1)
signal.pause()
print('after it')

def later():
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()

signal.signal(signal.SIGUSR1, lambda *_: print('user'))
later()
signal.pause()
print('after it')

def fail(*_):
    raise ValueError('of a handler')

signal.signal(signal.SIGUSR1, fail)
later()
try:
    signal.pause()
except ValueError as error:
    print(error)
"""


def test_a_pause_ends_with_a_handler(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    (tmp_path / "pauses.py").write_text(PAUSES)
    (tmp_path / "other.py").write_text("import time\ntime.sleep(3)\n")
    done = gpushare("run", "pauses.py", "other.py", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "logs" / "pauses.out").read_text() == plain("pauses.py").stdout
