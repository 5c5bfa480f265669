"""`/dev/stdout` and its kin, opened by a script, are its own streams."""

from pathlib import Path

from conftest import Run

WRITES = r"""
import json, logging, os, subprocess
print('first', flush=True)
with open('/dev/stdout', 'w') as file:
    json.dump({'a': 1}, file)
    file.write('\n')
with open('/proc/self/fd/2', 'a') as file:
    file.write('an error\n')
os.write(os.open('/dev/stderr', os.O_WRONLY), b'one more\n')
handler = logging.FileHandler('/dev/fd/1')
logging.getLogger('x').addHandler(handler)
logging.getLogger('x').warning('logged')
handler.close()
with open(1, 'w', closefd=False) as file:
    file.write('by its number\n')
print('of another one', file=open(1, 'w', closefd=False, buffering=1))
with os.fdopen(2, 'w', closefd=False) as file:
    file.write('an error by its number\n')
if os.fork() == 0:
    with open('/dev/stdout', 'w') as file:
        file.write('of a child\n')
    os._exit(0)
os.wait()
subprocess.run('echo of a shell > /dev/stdout', shell=True)
print(os.path.exists('/proc/thread-self/fd/0'))
"""


def test_a_script_that_opens_its_streams_by_name(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    (tmp_path / "writes.py").write_text(WRITES)
    alone = plain("writes.py")
    assert alone.returncode == 0 and "of a child" in alone.stdout, alone.stderr
    done = gpushare("run", "writes.py", "writes.py", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("writes", "writes-2"):
        assert (tmp_path / "logs" / f"{name}.out").read_text() == alone.stdout
        assert (tmp_path / "logs" / f"{name}.err").read_text() == alone.stderr
    assert (tmp_path / "logs" / "host.log").read_text() == ""


CLOSES = """
import gc, os, pathlib, time
print("before", flush=True)
os.fdopen(1, "w").write("by its number\\n")
class Cycle:
    pass
cycle = Cycle()
cycle.file, cycle.self = open(1, "w"), cycle
del cycle
made = os.open("made", os.O_CREAT | os.O_WRONLY)
pathlib.Path("dropped").touch()
while not pathlib.Path("collected").exists():
    time.sleep(0.01)
print("after", flush=True)
"""
COLLECTS = """
import gc, pathlib, time
while not pathlib.Path("dropped").exists():
    time.sleep(0.01)
gc.collect()
pathlib.Path("collected").touch()
print("collected", flush=True)
"""


def test_what_a_script_closes_by_its_number_stays_open_for_all(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "closes.py").write_text(CLOSES)
    (tmp_path / "collects.py").write_text(COLLECTS)
    done = gpushare("run", "closes.py", "collects.py", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    logs = tmp_path / "logs"
    assert (logs / "closes.out").read_text() == "before\nby its number\nafter\n"
    assert (logs / "collects.out").read_text() == "collected\n"
    assert (tmp_path / "made").read_bytes() == (logs / "host.log").read_bytes() == b""


LATER = """
import pathlib, subprocess, time
while not pathlib.Path("ended").exists():
    time.sleep(0.01)
time.sleep(1)
for _ in range(40):
    subprocess.run(["true"], stderr=subprocess.DEVNULL, check=True)
held = [open("/dev/null") for _ in range(40)]
for file in held:
    file.close()
print("fine")
"""


def test_what_an_ended_job_read_is_no_longer_the_host_s(gpushare: Run, tmp_path: Path) -> None:
    """Its number was kept from being closed where another job had opened the same file under it."""
    (tmp_path / "ends.py").write_text("import atexit\natexit.register(open, 'ended', 'w')\n")
    (tmp_path / "later.py").write_text(LATER)
    done = gpushare("run", "ends.py", "later.py")
    assert done.returncode == 0 and "later | fine" in done.stdout, done.stdout + done.stderr
