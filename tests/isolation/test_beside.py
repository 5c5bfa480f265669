"""What one job does and another would notice."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from conftest import Run, environment
from packages_installed import write_package

MEET = """
import pathlib, sys, time
def wait_for(name):
    while not pathlib.Path(name).exists():
        time.sleep(0.005)
"""


def test_a_print_that_one_job_replaced_dies_with_it(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "replaces.py").write_text(
        MEET + "import builtins\nfirst = print\nbuiltins.print = lambda *words: first('mine', *words)\n"
        "print('a')\npathlib.Path('set').touch()\nwait_for('seen')\n"
    )
    (tmp_path / "prints.py").write_text(
        MEET + "wait_for('set')\nprint('b')\npathlib.Path('seen').touch()\ntime.sleep(0.5)\nprint('c')\n"
    )
    done = gpushare("run", "replaces.py", "prints.py", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "logs" / "replaces.out").read_text() == "mine a\n"
    assert (tmp_path / "logs" / "prints.out").read_text() == "b\nc\n"


def test_the_folder_of_multiprocessing_lives_as_long_as_its_job(gpushare: Run, tmp_path: Path) -> None:
    folder = "import multiprocessing.util, os\nfolder = multiprocessing.util.get_temp_dir()\n"
    (tmp_path / "first.py").write_text(MEET + folder + "pathlib.Path('made').touch()\nwait_for('seen')\n")
    (tmp_path / "second.py").write_text(
        MEET + "wait_for('made')\n" + folder + "pathlib.Path('seen').touch()\ntime.sleep(0.7)\n"
        "print(os.path.isdir(folder), folder == multiprocessing.util.get_temp_dir())\n"
    )
    done = gpushare("run", "first.py", "second.py")
    assert done.returncode == 0, done.stderr
    assert "second | True True" in done.stdout


def test_a_warning_is_shown_once_beside_a_job_that_filters(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "filters.py").write_text(
        MEET + "import warnings\nfor _ in range(50):\n    with warnings.catch_warnings():\n"
        "        warnings.simplefilter('error')\n    time.sleep(0.01)\n"
    )
    (tmp_path / "warns.py").write_text(
        "import time, warnings\nimport numpy as np\n"
        "for step in range(50):\n    warnings.warn('again')\n    np.float64(step + 1) / np.float64(0)\n"
        "    time.sleep(0.01)\n"
    )
    done = gpushare("run", "filters.py", "warns.py", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout
    told = (tmp_path / "logs" / "warns.err").read_text()
    assert told.count("UserWarning: again") == 1
    assert told.count("RuntimeWarning: divide by zero") == 1


def test_a_warning_is_shown_once_beside_a_job_that_imports(
    gpushare: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shared module that sets filters while it is imported sets them for all; only who imports it asked for that."""
    site = tmp_path / "site"
    files = {
        f"filters{n}.py": "import warnings\nwarnings.simplefilter('default', ImportWarning)\n"
        for n in range(5)
    }
    write_package(site, "filters", files, compiled=True)
    (tmp_path / "imports.py").write_text(
        "import importlib, time\nfor n in range(5):\n    importlib.import_module(f'filters{n}')\n    time.sleep(0.1)\n"
    )
    (tmp_path / "warns.py").write_text(
        "import time, warnings\nfor step in range(60):\n    warnings.warn('again')\n    time.sleep(0.01)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(site))
    done = gpushare("run", "imports.py", "warns.py", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "logs" / "warns.err").read_text().count("UserWarning: again") == 1


def test_no_thread_goes_on_after_a_hard_exit(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "leaves.py").write_text(
        MEET + "import os, threading\n"
        "def go_on(touch, sleep):\n    while True: touch(); sleep(0.01)\n"
        "threading.Thread(target=go_on, args=[pathlib.Path('there').touch, time.sleep]).start()\n"
        "wait_for('there')\nos._exit(0)\n"
    )
    (tmp_path / "stays.py").write_text(
        MEET + "wait_for('there')\nthere = pathlib.Path('there')\n"
        "for _ in range(20):\n    time.sleep(0.3)\n    gone = not there.exists()\n    there.unlink(missing_ok=True)\n"
        "    if gone: break\n"
        "print('gone', gone)\n"
    )
    done = gpushare("run", "leaves.py", "stays.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "stays | gone True" in done.stdout


def test_a_handler_of_a_signal_from_outside_is_where_its_job_is(tmp_path: Path) -> None:
    (tmp_path / "handles.py").write_text(
        MEET + "import os, signal\nos.mkdir('sub')\nos.chdir('sub')\n"
        "signal.signal(signal.SIGUSR1, lambda *_: pathlib.Path('came').touch())\n"
        "print('up', flush=True)\nwait_for('came')\n"
    )
    command = [str(Path(sys.executable).with_name("gpushare")), "run", "handles.py"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment(tmp_path), text=True, **pipes)
    assert process.stdout
    while "up" not in (line := process.stdout.readline()):
        assert line, "ended early"
    (host,) = psutil.Process(process.pid).children()
    host.send_signal(signal.SIGUSR1)
    try:
        out, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0, out
    assert (tmp_path / "sub" / "came").exists()


def test_a_program_takes_the_place_of_one_job(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "hands_over.py").write_text(
        "import os, threading\n"
        "threading.Thread(target=lambda: os.execlp('sh', 'sh', '-c', 'echo $0; exit 5')).start()\n"
        "while True: pass\n"
    )
    (tmp_path / "stays.py").write_text("import time\ntime.sleep(1)\nprint('there')\n")
    done = gpushare("run", "hands_over.py", "stays.py", "--summary", "s.json")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "hands_over | sh" in done.stdout and "stays | there" in done.stdout
    assert "hands_over hands over to" in done.stderr


def test_a_signal_to_the_own_group_is_for_one_job(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text(
        "import os, signal, time\nos.killpg(os.getpgrp(), signal.SIGTERM)\ntime.sleep(1)\n"
    )
    (tmp_path / "stays.py").write_text("import time\ntime.sleep(1)\nprint('there')\n")
    done = gpushare("run", "ends.py", "stays.py")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "stays | there" in done.stdout


def test_exit_handlers_of_shared_modules_run(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "says_goodbye.py").write_text(
        "import atexit, pathlib\natexit.register(pathlib.Path('bye').absolute().touch)\n"
    )
    (tmp_path / "imports.py").write_text(
        "import importlib.util, sys\n"
        "class Finder:  # on no path of the script's, so the module is shared like an installed one\n"
        "    def find_spec(name, path, target=None):\n"
        "        if name == 'says_goodbye':\n"
        "            return importlib.util.spec_from_file_location(name, 'site/says_goodbye.py')\n"
        "sys.meta_path.append(Finder)\nimport says_goodbye\n"
    )
    done = gpushare("run", "imports.py")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "bye").exists()


FORKS = """
import os, pathlib, sys, time
me, other, last = sys.argv[1], sys.argv[2], len(sys.argv) > 3
called = []
def note(*what):
    called.append((os.getpid() != parent, *what))
parent = os.getpid()
os.register_at_fork(before=lambda: note(me, "before"), after_in_parent=lambda: note(me, "parent"))
os.register_at_fork(after_in_child=lambda: note(me, "child"))
sys.addaudithook(lambda event, args: note(*args) if event == "made.up" else None)
def fork():
    sys.audit("made.up", me)
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, repr(called).encode())
        os._exit(0)
    os.close(write)
    os.wait()
    print(os.read(read, 1000), called)
fork()
pathlib.Path(me).touch()
while not pathlib.Path(other).exists():
    time.sleep(0.01)
if last:
    time.sleep(1)  # the other one has ended
fork()
try:
    os.register_at_fork(before=3)
except TypeError as error:
    print(error)
"""


def test_hooks_of_forks(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    (tmp_path / "forks.py").write_text(FORKS)
    expected = []
    for words in (("one", "other"), ("other", "one", "last")):
        (tmp_path / words[1]).touch()
        expected.append(plain("forks.py", *words).stdout)
        for name in ("one", "other"):
            (tmp_path / name).unlink()
    done = gpushare("run", "forks.py one other", "forks.py other one last", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [(tmp_path / "logs" / f"forks{number}.out").read_text() for number in ("", "-2")] == expected
