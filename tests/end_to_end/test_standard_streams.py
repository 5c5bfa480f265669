"""A daemon or a cron job starts gpushare without some of its standard streams, or with ones that take nothing."""

import subprocess
from pathlib import Path

import pytest
from conftest import console, environment


def through_shell(words: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """The console script with these words behind it, as a shell reads them."""
    command = f'exec "$@" {words}'
    return subprocess.run(
        ["sh", "-c", command, "sh", *console()],
        cwd=folder,
        env=environment(folder) | more,
        text=True,
        capture_output=True,
        timeout=240,
    )


@pytest.fixture(autouse=True)
def scripts(tmp_path: Path, train: None) -> None:
    (tmp_path / "says.py").write_text("import sys\nprint('out', repr(sys.stdin.read()))\nsys.exit(0)\n")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_a_run_needs_no_standard_stream(closed: str, tmp_path: Path) -> None:
    done = through_shell(f"run says.py --log-dir logs --summary s.json {closed}", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "s.json").exists()
    assert (tmp_path / "logs" / "says.out").read_text() == "out ''\n"
    assert (tmp_path / "logs" / "says.err").read_text() == ""
    assert ("says | out" in done.stdout) == (">&-" not in closed.split())


@pytest.mark.parametrize(
    ("words", "code"), [("--help", 0), ("budget", 2), ("profile train.py 20", 0), ("plan 'train.py 20'", 0)]
)
@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_nor_does_any_other_command(words: str, code: int, closed: str, tmp_path: Path) -> None:
    done = through_shell(f"{words} {closed}", tmp_path, TMPDIR=str(tmp_path))
    assert done.returncode == code and "Traceback" not in done.stderr, done.stderr


@pytest.mark.parametrize("words", ["--help", "run --help", "--version"])
def test_a_help_that_can_not_be_written_is_told(words: str, tmp_path: Path) -> None:
    done = through_shell(f"{words} >/dev/full", tmp_path)
    assert done.returncode == 2
    assert done.stderr == "gpushare: what is asked for could not be written: No space left on device\n"


@pytest.mark.parametrize(("words", "code"), [("--version", 0), ("run none.py", 2)])
def test_that_python_stays_to_be_inspected_is_for_scripts(words: str, code: int, tmp_path: Path) -> None:
    done = through_shell(f"{words} </dev/null", tmp_path, PYTHONINSPECT="1")
    assert done.returncode == code and "Traceback" not in done.stderr, done.stderr
