"""A job that closes whatever is open, as daemons do."""

from pathlib import Path

from conftest import Run

CLOSES = """
import os, pathlib, time
while not pathlib.Path("up").exists():
    time.sleep(0.01)
time.sleep(0.2)
own = os.open(os.devnull, os.O_RDONLY)
for number in range(3, 256):
    try:
        os.close(number)
    except OSError:
        pass
os.closerange(3, 256)
try:
    os.fstat(own)
except OSError:
    print("its own file is closed")
pathlib.Path("closed").touch()
"""
GOES_ON = """
import pathlib, signal, subprocess, time
came = []
signal.signal(signal.SIGUSR1, lambda *_: came.append(1))
pathlib.Path("up").touch()
while not pathlib.Path("closed").exists():
    time.sleep(0.01)
subprocess.run(["sh", "-c", "kill -USR1 $PPID; echo a child"], check=True)
while not came:
    time.sleep(0.01)
print(open(__file__).read() != "")
"""


def test_it_closes_nothing_of_the_host_or_of_others(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "closes.py").write_text(CLOSES)
    (tmp_path / "goes_on.py").write_text(GOES_ON)
    done = gpushare("run", "closes.py", "goes_on.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "closes | its own file is closed" in done.stdout
    assert "goes_on | a child" in done.stdout and "goes_on | True" in done.stdout
    assert "closes called os.closerange(3, 256): nothing is closed" in done.stderr
