"""Steps on a machine that is lent: their time, what is left of them, and that each is a command that there is."""

import re
import shlex
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "scripts"))
import gpu_lent
from gpu_lent import Results, Step

SCRIPTS = Path(__file__).parent.parent.parent / "scripts"


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Results:
    monkeypatch.setattr(gpu_lent, "ROOT", tmp_path)
    return Results(tmp_path / "out")


def kept(results: Results, tmp_path: Path) -> dict[str, bytes]:
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["results.tgz"]
    with tarfile.open(tmp_path / "out" / "results.tgz") as archive:
        files = {name: archive.extractfile(name) for name in archive.getnames()}
        return {name: file.read() for name, file in files.items() if file}


@pytest.mark.parametrize("step", gpu_lent.STEPS, ids=lambda step: step.name)
def test_each_step_is_a_command_that_its_script_takes(step: Step, tmp_path: Path) -> None:
    command = shlex.split(step.command.format(s=100, to=tmp_path))
    done = subprocess.run(
        [sys.executable, str(SCRIPTS.parent / command[0]), *command[1:], "--list"],
        capture_output=True,
        text=True,
        timeout=100,
    )
    stated = step.name in ("works", "facts", "corpus")
    names = [line.split(": ")[1] for line in done.stdout.splitlines() if line[:1].strip()]
    assert done.returncode == 0 and names, done.stderr
    assert stated == step.command.startswith(gpu_lent.CHECK)
    if step.name == "facts":
        assert set(names) == set(gpu_lent.FACTS)


def test_what_a_step_leaves_is_kept(results: Results, tmp_path: Path) -> None:
    code = "import pathlib, sys; folder = pathlib.Path(sys.argv[1], 'a'); folder.mkdir(); "
    code += "(folder / 'b').write_text('found'); sys.exit(3)"
    told = gpu_lent.run(Step("a", 0, 9, f"-c {shlex.quote(code)} {{to}}"), 9, results)
    assert told.startswith("exit code 3 after")
    assert kept(results, tmp_path) == {"a/b": b"found"}


def test_a_step_that_does_not_end_leaves_what_it_has_written(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_lent, "ENDS_S", 0.5)
    monkeypatch.setattr(gpu_lent, "KEPT_EVERY_S", 0.1)
    code = "import pathlib, sys, time; pathlib.Path(sys.argv[1], 'b').write_text('found'); time.sleep(1000)"
    begun = time.monotonic()
    told = gpu_lent.run(Step("a", 0, 9, f"-c {shlex.quote(code)} {{to}}"), 1, results)
    assert "more than it was given" in told and time.monotonic() - begun < 60
    assert kept(results, tmp_path) == {"b": b"found"}


def test_a_step_without_enough_time_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu_lent, "ROOT", tmp_path)
    steps = (Step("works", 1000, 9, "-c 'print(1)'"), Step("facts", 0, 9, "-c 'print(7 * 11)'"))
    monkeypatch.setattr(gpu_lent, "STEPS", steps)
    monkeypatch.setattr(
        sys, "argv", ["x", "--out", str(tmp_path / "out"), "--seconds", "60", "works", "facts"]
    )
    assert gpu_lent.main() == 0
    out = capfd.readouterr().out
    assert re.search(r"works: not begun: \d+ s were left, and it needs 1000", out)
    assert "\n77\n" in out and "facts: exit code 0" in out
