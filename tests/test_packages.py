"""Trainings on top of packages that nobody here wrote, each beside another: all as under plain python."""

import json
import shutil
from pathlib import Path

import pytest
from conftest import Run

FOLDER = Path(__file__).parent / "scripts_packages"
JOBS = {
    "test_script": ("-m", "accelerate.test_utils.scripts.test_script"),
    "hf_trainer": (str(FOLDER / "hf_trainer.py"),),
    "lightning_fit": (str(FOLDER / "lightning_fit.py"),),
    "accelerate_accumulates": (str(FOLDER / "accelerate_accumulates.py"),),
}


@pytest.mark.parametrize(
    "pair",
    [
        ("hf_trainer", "lightning_fit"),
        ("lightning_fit", "test_script"),
        ("hf_trainer", "test_script"),
        ("hf_trainer", "accelerate_accumulates"),
    ],
    ids="+".join,
)
def test_as_under_plain_python(pair: tuple[str, str], gpushare: Run, plain: Run, tmp_path: Path) -> None:
    expected = {}
    for name in pair:
        (tmp_path / name).mkdir()
        expected[name] = plain(*JOBS[name], cwd=tmp_path / name)
        shutil.rmtree(tmp_path / name)
        (tmp_path / name).mkdir()
    tables = [f"[[job]]\ncommand = '{' '.join(JOBS[n])}'\ncwd = '{tmp_path / n}'\n" for n in pair]
    (tmp_path / "jobs.toml").write_text("".join(tables))
    gpushare("run", "-f", "jobs.toml", "--log-dir", "logs", "--summary", "s.json", "--budget", "2GiB")
    jobs = {j["name"]: j for j in json.loads((tmp_path / "s.json").read_text())["jobs"]}
    for name in pair:
        assert (tmp_path / "logs" / f"{name}.out").read_text() == expected[name].stdout
        assert (tmp_path / "logs" / f"{name}.err").read_text() == expected[name].stderr
        assert jobs[name]["exit_code"] == expected[name].returncode == 0


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("draws", "2", "3"),
        ("bars", "one", "other"),
        ("hydra_app", "number=3", "number=4"),
        ("logs_to_wandb", "2", "3"),
        ("hf_registers", "16", "24"),
        ("fabric_mixed", "2", "3"),
        ("rich_bars", "2", "3"),
    ],
)
def test_a_script_beside_itself(
    name: str, one: str, other: str, gpushare: Run, plain: Run, tmp_path: Path
) -> None:
    script = FOLDER / f"{name}.py"
    expected = [plain(script, argument) for argument in (one, other)]
    done = gpushare("run", f"{script} {one}", f"{script} {other}", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    for alone, job in zip(expected, (name, f"{name}-2"), strict=True):
        assert alone.returncode == 0, alone.stderr
        assert (tmp_path / "logs" / f"{job}.out").read_text() == alone.stdout
