"""Scripts in the styles that people write, each under gpushare beside a different one: output, exit code and
files written are those of plain python, byte for byte.

Who runs beside whom is drawn anew each time; GPUSHARE_TEST_SEED repeats a draw.
"""

import json
import os
import random
import re
import shutil
from pathlib import Path

import pytest
from conftest import Run

SCRIPTS = sorted(path.stem for path in (Path(__file__).parent / "scripts").glob("*.py"))
SEED = int(os.environ["GPUSHARE_TEST_SEED"])  # from conftest.py: all workers draw the same
_drawn = random.Random(SEED).sample(SCRIPTS, len(SCRIPTS))
PAIRS = list(zip(_drawn[::2], _drawn[1::2], strict=False))
PAIRS += [(_drawn[-1], _drawn[0])] if len(_drawn) % 2 else []


def copy(name: str, folder: Path) -> Path:
    """The script in a directory of its own."""
    folder.mkdir()
    return Path(shutil.copy(Path(__file__).parent / "scripts" / f"{name}.py", folder / f"{name}.py"))


def written(folder: Path) -> dict[str, bytes]:
    files = (p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def without_times(told: str) -> str:
    """Of torch's own messages, which begin with when and in which process they come."""
    return re.sub(r"^[WE]\d{4} [\d:.]+ +\d+ torch/", "torch/", told, flags=re.MULTILINE)


@pytest.mark.parametrize("pair", PAIRS, ids="+".join)
def test_as_under_plain_python(pair: tuple[str, str], gpushare: Run, plain: Run, tmp_path: Path) -> None:
    print(f"GPUSHARE_TEST_SEED={SEED}")
    expected, tables = {}, []
    # The directory has the same name in both runs, since scripts may print it.
    for name in pair:
        script = copy(name, tmp_path / name)
        expected[name] = plain(script, cwd=script.parent), written(script.parent)
        shutil.rmtree(script.parent)
        copy(name, script.parent)
        tables.append(f"[[job]]\ncommand = '{script}'\ncwd = '{script.parent}'\n")
    (tmp_path / "jobs.toml").write_text("".join(tables))
    done = gpushare("run", "-f", "jobs.toml", "--log-dir", "logs", "--summary", "s.json", "--budget", "1GiB")
    jobs = {j["name"]: j for j in json.loads((tmp_path / "s.json").read_text())["jobs"]}
    for name in pair:
        alone, files = expected[name]
        told = (tmp_path / "logs" / f"{name}.err").read_text()
        assert without_times(told) == without_times(alone.stderr), done.stderr
        assert (tmp_path / "logs" / f"{name}.out").read_text() == alone.stdout
        assert jobs[name]["exit_code"] == alone.returncode
        assert written(tmp_path / name) == files
