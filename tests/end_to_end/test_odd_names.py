"""Scripts whose names are odd."""

import json
import os
from pathlib import Path

from conftest import Run


def test_a_name_that_is_no_text_is_written_as_it_is(train: None, gpushare: Run, tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    (tmp_path / "train.py").rename(tmp_path / f"{name}.py")
    arguments = ("--explain", "--summary", "s.json", "--log-dir", "logs", "--trace", "t.log")
    jobs = (f"{name}.py 30", f"{name}.py 20")
    done = gpushare("run", *jobs, *arguments, "--policy", "temporal", "--no-profile")
    assert done.returncode == 0, done.stderr
    assert "each wait is in logs/waits.tsv" in done.stderr
    assert b"\tcaf\xe9" in (tmp_path / "logs" / "waits.tsv").read_bytes()
    assert len((tmp_path / "logs" / f"{name}.out").read_text().splitlines()) == 30
    names = [job["name"] for job in json.loads((tmp_path / "s.json").read_text())["jobs"]]
    assert names == [name, f"{name}-2"]
