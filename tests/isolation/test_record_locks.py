"""`fcntl.lockf` keeps jobs out of each other's sections, and a job not out of its own."""

from pathlib import Path

from conftest import Run

COUNTS = """
import fcntl, os
for _ in range(300):
    with open('lock', 'w') as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        count = int(open('count').read()) if os.path.exists('count') else 0
        open('count', 'w').write(str(count + 1))
"""
TRIES = """
import fcntl
try:
    fcntl.lockf(open('own', 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)
    print('free')
except BlockingIOError as error:
    print(error)
"""
TAKES_AGAIN = """
import fcntl, subprocess, sys
one, two = open('own', 'w+'), open('own', 'w+')
fcntl.lockf(one, fcntl.LOCK_EX)
fcntl.lockf(two, fcntl.LOCK_EX | fcntl.LOCK_NB)
fcntl.lockf(one, fcntl.LOCK_SH, 5, 2)

def another():
    return subprocess.run([sys.executable, 'tries.py'], capture_output=True, text=True).stdout.strip()

print(another())
fcntl.lockf(two, fcntl.LOCK_UN)
print(another())
for file, command in ((one, 64), (open('own'), fcntl.LOCK_EX), (999, fcntl.LOCK_EX)):
    try:
        fcntl.lockf(file, command)
    except (OSError, ValueError) as error:
        print(type(error).__name__, error)
"""


def test_jobs_keep_each_other_out(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    for name, text in (("counts", COUNTS), ("again", TAKES_AGAIN), ("tries", TRIES)):
        (tmp_path / f"{name}.py").write_text(text)
    done = gpushare("run", "counts.py", "counts.py", "counts.py", "again.py", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "count").read_text() == "900"
    assert (tmp_path / "logs" / "again.out").read_text() == plain("again.py").stdout


UPGRADES = """
import fcntl, pathlib, time
one, two = open('both', 'w+'), open('both', 'w+')
fcntl.lockf(one, fcntl.LOCK_SH, 10)
fcntl.lockf(two, fcntl.LOCK_EX)  # of more than the other one has
pathlib.Path('upgraded').touch()
while not pathlib.Path('looked').exists():
    time.sleep(0.01)
"""
LOOKS = """
import fcntl, pathlib, time
while not pathlib.Path('upgraded').exists():
    time.sleep(0.01)
file = open('both', 'r+')
for kind, start in ((fcntl.LOCK_SH, 0), (fcntl.LOCK_EX, 50)):
    try:
        fcntl.lockf(file, kind | fcntl.LOCK_NB, 5, start)
        print('had')
    except BlockingIOError:
        print('in the way')
pathlib.Path('looked').touch()
"""


def test_what_a_job_has_by_two_open_files_it_has(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "upgrades.py").write_text(UPGRADES)
    (tmp_path / "looks.py").write_text(LOOKS)
    done = gpushare("run", "upgrades.py", "looks.py", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "logs" / "looks.out").read_text() == "in the way\nin the way\n"


def test_locks_end_with_their_job(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "leaves.py").write_text(
        "import fcntl, os\nfcntl.lockf(os.open('guard', os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)\n"
        "os.lockf(os.open('by_os', os.O_RDWR | os.O_CREAT), os.F_LOCK, 0)\nprint('in')\n"
    )
    done = gpushare("run", "leaves.py", "leaves.py", "leaves.py", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line for line in done.stdout.splitlines() if line.endswith("| in")] == [
        line for line in done.stdout.splitlines() if " | " in line
    ]
    assert done.stdout.count("| in") == 3


def test_a_lock_of_one_job_is_in_the_way_of_another(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "keeps.py").write_text(
        "import fcntl, pathlib, time\nfile = open('own', 'w+')\nfcntl.lockf(file, fcntl.LOCK_SH, 4)\n"
        "pathlib.Path('kept').touch()\nwhile not pathlib.Path('tried').exists():\n    time.sleep(0.01)\n"
    )
    (tmp_path / "tries.py").write_text(
        "import fcntl, pathlib, time\nwhile not pathlib.Path('kept').exists():\n    time.sleep(0.01)\n"
        "file, again = open('own', 'r+'), open('own', 'r+')\n"
        "fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, 4)\n"  # beside another one that is shared
        "fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 0, 4)\n"  # what is behind it
        "for each in (file, again):\n    try:\n        fcntl.lockf(each, fcntl.LOCK_EX | fcntl.LOCK_NB, 4)\n"
        "    except BlockingIOError:\n        print('in the way')\n"
        "pathlib.Path('tried').touch()\nfcntl.lockf(again, fcntl.LOCK_EX, 4)\nprint('had')\n"
    )
    done = gpushare("run", "keeps.py", "tries.py", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "logs" / "tries.out").read_text() == "in the way\nin the way\nhad\n"
