"""Handlers of signals have run where a script goes on that has sent itself one, and where it ends."""

import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import Run, console, environment

SENDS = """
import os, signal, sys, threading, time
saved = []
def handler(number, frame):
    time.sleep(0.2)
    saved.append((threading.current_thread() is threading.main_thread(), frame.f_code.co_name))
    if len(saved) > 2:
        raise ValueError("from the handler")
signal.signal(signal.SIGUSR1, handler)
def send():
    signal.raise_signal(signal.SIGUSR1)
    print(saved)
    os.kill(os.getpid(), signal.SIGUSR1)
    print(saved)
    try:
        signal.raise_signal(signal.SIGUSR1)
    except ValueError as error:
        print(error)
send()
"""


def test_what_a_script_sends_itself_is_handled_before_its_next_line(
    gpushare: Run, plain: Run, tmp_path: Path
) -> None:
    (tmp_path / "sends.py").write_text(SENDS)
    done = gpushare("run", "sends.py", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "logs" / "sends.out").read_text() == plain("sends.py").stdout != ""


SAVES = """
import pathlib, signal, sys, time
stop = []
def handler(number, frame):
    stop.append(1)
    for part in range(20):
        with open("saved", "a") as file:
            file.write("x")
        time.sleep(0.05)
signal.signal(signal.SIGUSR1, handler)
pathlib.Path("up").touch()
while not stop:
    time.sleep(0.01)
END
"""


@pytest.mark.parametrize(("end", "code"), [("", 0), ("sys.exit(3)", 1), ("1 / 0", 1)])
def test_a_script_does_not_end_in_the_middle_of_a_handler(end: str, code: int, tmp_path: Path) -> None:
    """It was cut off, and left half a checkpoint, with exit code 0."""
    (tmp_path / "saves.py").write_text(SAVES.replace("END", end))
    run = subprocess.Popen(
        [*console(), "run", "saves.py"], cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.DEVNULL
    )
    while not (tmp_path / "up").exists():
        assert run.poll() is None
        time.sleep(0.01)
    run.send_signal(signal.SIGUSR1)
    assert run.wait(60) == code
    assert (tmp_path / "saved").read_text() == "x" * 20
