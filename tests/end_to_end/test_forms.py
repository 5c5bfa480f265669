"""The ways to name jobs, and what a script finds around it."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Run, environment

pytestmark = pytest.mark.usefixtures("train")


def test_a_script_sees_its_own_world(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    (tmp_path / "world.py").write_text(
        "import atexit, os, pickle, sys, threading\n"
        "class C: pass\n"
        "assert type(pickle.loads(pickle.dumps(C()))) is C\n"
        "assert sys.modules['__main__'].C is C\n"
        "print(__name__, __file__, sys.argv, os.getcwd())\n"
        "print('err', file=sys.stderr)\n"
        "t = threading.Thread(target=lambda: print('thread', sys.argv)); t.start(); t.join()\n"
        "atexit.register(print, 'bye')\n"
        "os.chdir('folder'); print(os.getcwd())\n"
    )
    (tmp_path / "folder").mkdir()
    done = gpushare("run", "world.py 1", "world.py 2", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    for name, argument in (("world", "1"), ("world-2", "2")):
        expected = plain("world.py", argument)
        assert (tmp_path / "logs" / f"{name}.out").read_text() == expected.stdout
        assert (tmp_path / "logs" / f"{name}.err").read_text() == expected.stderr


def test_the_users_directory_does_not_hide_our_modules(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "gpushare").mkdir()
    (tmp_path / "gpushare" / "__init__.py").write_text("raise SystemExit('the wrong gpushare')\n")
    (tmp_path / "rich.py").write_text("raise SystemExit('the wrong rich')\n")
    (tmp_path / "hello.py").write_text("import os\nprint('hello')\n")
    done = gpushare("run", "hello.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "hello | hello" in done.stdout


def test_a_module_of_a_package(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("NAME = 'package'\n")
    (package / "train.py").write_text(
        "import sys\nfrom . import NAME\nprint(NAME, __name__, __package__, __spec__.name, sys.argv)\n"
    )
    (package / "__main__.py").write_text("import sys\nfrom .train import NAME\nprint('main', sys.argv[1:])\n")
    done = gpushare("run", "-m package.train --lr 0.1", "-m package x", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    for name, words in (("train", ("package.train", "--lr", "0.1")), ("package", ("package", "x"))):
        assert (tmp_path / "logs" / f"{name}.out").read_text() == plain("-m", *words).stdout


def test_a_job_file(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "shows.py").write_text(
        "import os, subprocess, sys\n"
        "print(os.path.basename(os.getcwd()), os.environ.get('A'), sys.argv[1:], flush=True)\n"
        "print(subprocess.run(['sh', '-c', 'echo $A'], capture_output=True, text=True).stdout.strip())\n"
    )
    (tmp_path / "jobs.toml").write_text(
        "[[job]]\ncommand = 'shows.py 1'\ncwd = 'sub'\nname = 'first'\nenv = {A = 'x'}\n"
        "[[job]]\ncommand = 'sub/shows.py 2'\n"
    )
    done = gpushare("run", "-f", "jobs.toml", "train.py 2", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "logs" / "first.out").read_text() == "sub x ['1']\nx\n"
    assert (tmp_path / "logs" / "shows.out").read_text() == f"{tmp_path.name} None ['2']\n\n"
    assert "train | 1" in done.stdout


READS = "import sys\nprint(sys.stdin.read().upper())\n"


def test_one_job_gets_the_input(tmp_path: Path) -> None:
    (tmp_path / "reads.py").write_text(READS)
    for jobs, expected in ((["reads.py"], "ABC\n"), (["reads.py", "train.py 1"], "\n")):
        command = [str(Path(sys.executable).with_name("gpushare")), "run", *jobs, "--log-dir", "logs"]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment(tmp_path), input="abc", text=True, capture_output=True
        )
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "logs" / "reads.out").read_text() == expected


def test_without_a_log_directory_the_logs_go_to_the_state_directory(gpushare: Run, tmp_path: Path) -> None:
    done = gpushare("run", "train.py 2")
    (folder,) = (tmp_path / "state" / "gpushare").iterdir()
    assert f"logs are in {folder}" in done.stderr
    assert len((folder / "train.out").read_text().splitlines()) == 2
