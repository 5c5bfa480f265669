"""What is told when a run can't start, or a job can't go on."""

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TRAIN, Run, console, environment, limited


@pytest.fixture(autouse=True)
def scripts(tmp_path: Path, train: None) -> None:
    (tmp_path / "big.py").write_text(TRAIN.format(rows=200_000))
    (tmp_path / "bad.py").write_text("x = 1\ny = (\n")
    (tmp_path / "three.py").write_text("import sys\nprint('out')\nsys.exit(3)\n")
    (tmp_path / "raises.py").write_text("def f():\n    return 1 / 0\n\nf()\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "null.py").write_bytes(b"x = 1\n\0\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing to run"),
        (("none.py",), "no script none.py"),
        (("-m nothing.here", "train.py"), "no module nothing.here"),
        (("folder",), "is a directory"),
        (("bad.py",), "bad.py, line 2"),
        (("train.py", "--budget", "30XB"), "a size must be"),
        (("train.py", "--budget", "0"), "more than zero"),
        (("train.py", "--budget", "33554431"), "at least 33554432 bytes, but --budget gives 33554431 bytes"),
        (("train.py", "--split-size", "2097151", "--policy", "waterwave"), "(2097151 bytes)"),
        (("/dev/null",), "/dev/null is no regular file"),
        (("null.py",), "null.py: source code string cannot contain null bytes"),
        (("train.py", "--budget", "900TB"), "at most the device's memory"),
        (("train.py", "--device", "cuda"), "--device cuda: "),
        (("train.py", "--bugdet", "1GB"), "no such option: --bugdet"),
        (("train.py", "--lr", "0.1"), "stand with it in quotes: 'train.py --lr 0.1'"),
        (("python train.py",), "a job is the script, without python: 'train.py'"),
        ((f"{sys.executable} train.py 5",), "is no script; a job is the script, without "),
        (("LR=1 train.py",), "there is no script LR=1 in"),
        (("LR=1 train.py",), "in the table `env`"),
        (("torchrun train.py",), "which runs as one process, without torchrun"),
        (("train.py", "--summary", "x.json", "--trace", "./x.json"), "give two files"),
        (("train.py", "--log-dir", "/proc/none"), "can't be written"),
        (("train.py", "--summary", "none/s.json"), "can't be written"),
    ],
)
def test_bad_input_starts_nothing(arguments: tuple[str, ...], message: str, gpushare: Run) -> None:
    done = gpushare("run", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""


def test_a_job_that_raises_leaves_the_other_alone(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    done = gpushare("run", "raises.py", "train.py 5", "--log-dir", "logs")
    assert done.returncode == 1
    expected = plain("raises.py")
    assert (tmp_path / "logs" / "raises.err").read_text() == expected.stderr
    assert len((tmp_path / "logs" / "train.out").read_text().splitlines()) == 5


def test_an_exit_code_is_told(gpushare: Run, tmp_path: Path) -> None:
    done = gpushare("run", "three.py", "--summary", "s.json")
    assert done.returncode == 1
    (job,) = json.loads((tmp_path / "s.json").read_text())["jobs"]
    assert (job["status"], job["exit_code"]) == ("failed", 3)
    assert "three | out" in done.stdout


def test_a_budget_too_small_for_one_job_is_refused_with_figures(gpushare: Run) -> None:
    done = gpushare("run", "big.py 5", "train.py 5", "--budget", "150MiB")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "big needs at least" in done.stdout and "the budget is 150.0 MiB" in done.stdout


KEEPER = """
import pathlib, time, torch
kept = torch.zeros(60 << 18)
pathlib.Path("ready").touch()
while not pathlib.Path("over").exists():
    {until}
"""
COMER = """
import pathlib, time, torch
while not pathlib.Path("ready").exists():
    time.sleep(0.01)
weight = torch.ones(64, requires_grad=True)
pathlib.Path("begun").touch()
try:
    for step in range(3):
        rows = torch.randn(50 << 12 if step else 64, 64)
        (rows * weight).sum().backward()
finally:
    pathlib.Path("over").touch()
"""


def test_a_job_that_does_not_fit_beside_another_is_told_so(
    gpushare: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))  # nothing can be copied out
    (tmp_path / "keeper.py").write_text(KEEPER.format(until="time.sleep(20)"))
    (tmp_path / "comer.py").write_text(COMER)
    done = gpushare("run", "keeper.py", "comer.py", "--budget", "120MiB", "--summary", "s.json")
    assert done.returncode == 3, done.stdout + done.stderr
    assert re.search(r"beside the 6\d\.\d MiB that the other jobs keep", done.stdout)
    assert "and the budget is 120.0 MiB" in done.stdout
    (told,) = (tmp_path / "state").rglob("comer.err")
    assert "could not be copied out: is there room in $TMPDIR?" in told.read_text()
    states = [j["status"] for j in json.loads((tmp_path / "s.json").read_text())["jobs"]]
    assert states == ["ok", "refused"]


def test_a_job_that_computes_is_waited_for(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "keeper.py").write_text(
        "import pathlib, time, torch\n"
        "kept = torch.zeros(60 << 18)\n"
        'pathlib.Path("ready").touch()\n'
        'while not pathlib.Path("begun").exists():\n'
        "    time.sleep(0.01)\n"
        "end = time.monotonic() + 15\n"
        "while time.monotonic() < end:\n"
        "    sum(range(10000))\n"
    )
    (tmp_path / "comer.py").write_text(COMER)
    done = gpushare("run", "keeper.py", "comer.py", "--budget", "120MiB", "--summary", "s.json")
    assert done.returncode == 0, done.stdout + done.stderr
    comer = json.loads((tmp_path / "s.json").read_text())["jobs"][1]
    assert comer["longest_wait_s"] > 10


def test_a_job_that_sleeps_makes_room_for_it(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "keeper.py").write_text(
        KEEPER.format(until="time.sleep(0.01)") + "assert (kept == 0).all()\n"
    )
    (tmp_path / "comer.py").write_text(COMER)
    done = gpushare("run", "keeper.py", "comer.py", "--budget", "120MiB", "--summary", "s.json")
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "s.json").read_text())
    assert summary["jobs"][0]["copies_out"] > 0
    assert summary["pool_peak_bytes"] <= summary["budget_bytes"]


def test_a_saved_profile_above_the_budget_is_refused_at_once(gpushare: Run) -> None:
    assert gpushare("profile", "big.py", "9").returncode == 0
    done = gpushare("run", "train.py 5", "big.py 9", "--budget", "100MiB")
    assert done.returncode == 3
    assert "nothing was started: big needs at least" in done.stderr and "--no-profile" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("none.py",), 2, "no script none.py"),
        (("raises.py",), 1, "ZeroDivisionError: division by zero"),
        (("three.py",), 1, "three exited with 3: it takes 3 iterations, and none was seen"),
        (("quiet.py",), 1, "it takes 3 iterations, and none was seen"),
        (("train.py", "2"), 1, "train ended well: it takes 3 iterations, and 2 were seen"),
        (("--budget", "100MiB", "big.py", "5"), 3, "big needs at least"),
    ],
)
def test_what_has_no_profile(
    arguments: tuple[str, ...], code: int, message: str, gpushare: Run, tmp_path: Path
) -> None:
    (tmp_path / "quiet.py").write_text("print('nothing to see')\n")
    done = gpushare("profile", *arguments)
    assert message in done.stderr, done.stderr
    assert done.returncode == code
    assert done.stdout == ""


WAITS = """
import pathlib, time
print("begun", flush=True)
while not pathlib.Path("over").exists():
    time.sleep(0.01)
"""


STEPS = """
weight = torch.ones(100, requires_grad=True)
for _ in range(50):
    weight.sum().backward()
"""


def limited_files(
    *arguments: str, folder: Path, most: int, command: str = "run"
) -> subprocess.CompletedProcess[str]:
    """The console script where no file may grow beyond `most` bytes: a disk that is full from there on."""
    return limited([*console(), command, *arguments], folder, resource.RLIMIT_FSIZE, (most, most))


def test_a_full_disk_is_told_and_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "talks.py").write_text("for i in range(200_000):\n    print('x' * 99)\n")
    most = 16 << 20
    done = limited_files("talks.py", "--log-dir", "logs", folder=tmp_path, most=most)
    assert done.returncode == 1, done.stderr  # as plain python's, whose `print` fails there
    assert done.stderr.count("is incomplete from here on: File too large") == 1
    assert (tmp_path / "logs" / "talks.out").stat().st_size == most
    assert done.stdout.count("talks | x") == 200_000


def test_a_summary_that_can_t_be_written_is_in_the_exit_code(gpushare: Run, tmp_path: Path) -> None:
    done = gpushare("run", "train.py 20", "--summary", "/dev/full")
    assert "the summary was not written: [Errno 28] No space left on device" in done.stderr
    assert done.returncode == 1 and re.search(r"train +ok", done.stdout)


@pytest.mark.parametrize("command", ["run", "profile"])
def test_so_is_a_trace_that_ends_early(command: str, tmp_path: Path) -> None:
    most = 9 << 20  # what the host tells of itself takes nearly that
    (tmp_path / "many.py").write_text(
        f"import torch\nfor _ in range({most} // 40):\n    torch.empty(10)\n" + STEPS
    )
    done = limited_files("--trace", "t.log", "many.py", folder=tmp_path, most=most, command=command)
    assert "a log that the host writes (--trace, --explain) ends early" in done.stderr
    assert done.returncode == 1, done.stderr


def test_a_limit_below_what_a_run_itself_needs_is_told(tmp_path: Path) -> None:
    done = limited_files("train.py 5", folder=tmp_path, most=100 << 10)
    assert done.returncode == 2, done.stderr
    assert "File too large, and no file may have more than 102400 (ulimit -f)" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_working_directory_that_has_been_removed_is_told(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = ["sh", "-c", 'rmdir "$PWD"; exec "$@"', "sh", *console(), "run", str(tmp_path / "train.py 5")]
    done = subprocess.run(
        command, cwd=gone, env=environment(tmp_path), text=True, capture_output=True, timeout=60
    )
    assert done.returncode == 2 and "the working directory has been removed" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


def test_two_runs_do_not_write_to_one_log_directory(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text(WAITS)
    first = subprocess.Popen(
        [*console(), "run", "waits.py", "--log-dir", "logs"],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert first.stdout and first.stdout.readline() == b"waits | begun\n"
        second = gpushare("run", "train.py 5", "--log-dir", "logs")
    finally:
        (tmp_path / "over").touch()
        first.communicate(timeout=60)
    assert second.returncode == 2
    assert "another run that is under way writes its logs to logs" in second.stderr
    assert (tmp_path / "logs" / "waits.out").read_text() == "begun\n"
    assert gpushare("run", "train.py 5", "--log-dir", "logs").returncode == 0  # nobody has it any more


def test_a_stdout_that_takes_nothing_ends_nothing(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("gpushare")), "run", "train.py 20", "--log-dir", "logs"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command, cwd=tmp_path, env=environment(tmp_path), stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 0, done.stderr
    assert "the summary could not be printed: No space left on device" in done.stderr
    assert len((tmp_path / "logs" / "train.out").read_text().splitlines()) == 20


def test_neither_stream_takes_anything_and_the_summary_is_written(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("gpushare")), "run", "train.py 20", "--summary", "s.json"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command, cwd=tmp_path, env=environment(tmp_path), stdout=full, stderr=full, text=True
        )
    assert done.returncode == 0
    (job,) = json.loads((tmp_path / "s.json").read_text())["jobs"]
    assert job["status"] == "ok"


def test_a_cache_that_takes_nothing_is_told(tmp_path: Path, gpushare: Run) -> None:
    (tmp_path / "cache").write_text("no folder")
    done = gpushare("profile", "train.py", "20")
    assert done.returncode == 0 and "the profile is not kept: " in done.stderr, done.stderr
    done = gpushare("run", "train.py 20")
    assert done.returncode == 0 and "the profile of train is not kept: " in done.stderr, done.stderr


def test_a_script_whose_name_has_a_space(tmp_path: Path, gpushare: Run) -> None:
    (tmp_path / "train.py").rename(tmp_path / "my train's.py")
    done = gpushare("profile", "my train's.py", "20")
    assert done.returncode == 0 and "profile saved as " in done.stderr, done.stderr


def test_options_behind_the_script_of_a_profile_are_told_of(gpushare: Run) -> None:
    done = gpushare("profile", "train.py", "20", "--json")
    assert done.returncode == 0 and "iteration" in done.stdout and "{" not in done.stdout, done.stdout
    assert "--json stands behind the script, so it is the script's" in done.stderr


def test_jobs_of_one_script_are_told_apart(gpushare: Run) -> None:
    done = gpushare("run", "train.py 6", "train.py 7", "three.py")
    notes = [line for line in done.stderr.splitlines() if line.startswith("gpushare: train")]
    assert notes == ["gpushare: train is train.py 6", "gpushare: train-2 is train.py 7"]


def test_a_plan_of_a_script_without_iterations_simulates_nothing(tmp_path: Path, gpushare: Run) -> None:
    (tmp_path / "none.py").write_text("print('nothing')\n")
    done = gpushare("plan", "none.py", "train.py 20")
    assert done.returncode == 2 and "no profile: none ended well" in done.stderr, done.stderr


def test_a_reader_that_goes_away_ends_nothing(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("gpushare")), "run", "train.py 500", "--log-dir", "logs"]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout and process.stderr
    assert os.read(process.stdout.fileno(), 10)
    process.stdout.close()
    errors = process.stderr.read().decode()
    assert process.wait() == 0, errors
    assert "Traceback" not in errors
    assert len((tmp_path / "logs" / "train.out").read_text().splitlines()) == 500
