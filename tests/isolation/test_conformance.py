"""One scenario for each kind of process-wide state: a script sees what it sees under plain python, alone, beside
a job that sets another value, in its threads, in its children; and a job that comes later sees nothing of it."""

import ast
from pathlib import Path

import pytest
from conftest import Run

JOBS = Path(__file__).parent / "jobs"
STATES = [
    node.name for node in ast.parse((JOBS / "states.py").read_text()).body if isinstance(node, ast.ClassDef)
]


def output(folder: Path, name: str) -> str:
    return (folder / "logs" / f"{name}.out").read_text() + (folder / "logs" / f"{name}.err").read_text()


@pytest.mark.parametrize("state", STATES)
def test_a_job_has_it_for_itself(state: str, gpushare: Run, plain: Run, tmp_path: Path) -> None:
    script = JOBS / "scenario.py"
    expected = {value: plain(script, state, value) for value in ("a", "b", "-")}
    for done in expected.values():
        assert done.returncode == 0, done.stderr
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    done = gpushare(
        "run",
        f"{script} {state} a {meeting} 1 2",
        f"{script} {state} b {meeting} 2 1",
        f"{script} {state} - {meeting} 3 1 2",
        "--log-dir",
        "logs",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for name, value in (("scenario", "a"), ("scenario-2", "b"), ("scenario-3", "-")):
        assert output(tmp_path, name) == expected[value].stdout + expected[value].stderr, name


@pytest.mark.parametrize("state", STATES)
def test_alone(state: str, gpushare: Run, plain: Run, tmp_path: Path) -> None:
    expected = plain(JOBS / "scenario.py", state, "a")
    done = gpushare("run", f"{JOBS / 'scenario.py'} {state} a", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert output(tmp_path, "scenario") == expected.stdout + expected.stderr
