"""What a run says of its modes."""

import json
from pathlib import Path

import pytest
from conftest import Run


@pytest.mark.usefixtures("train")
def test_auto_is_the_default_and_says_which_mode_was_in_force(gpushare: Run, tmp_path: Path) -> None:
    done = gpushare("run", "train.py 1500", "train.py 1500", "--budget", "64MiB", "--summary", "s.json")
    assert done.returncode == 0, done.stderr
    assert "policy auto" in done.stderr
    summary = json.loads((tmp_path / "s.json").read_text())
    assert summary["policy"] == "auto"
    modes = summary["modes"]
    assert next(iter(modes)) == "zico" and set(modes) <= {"zico", "temporal"}  # both peaks fit
    assert modes["zico"]["yield"] > 0
    assert 0 < sum(mode["seconds"] for mode in modes.values()) < summary["duration_s"]
    assert summary["turns_s"] == modes.get("temporal", {"seconds": 0})["seconds"]
    assert summary["trials_lost_s"] >= 0
    assert "times the pace of one after the other" in done.stderr


def test_a_fixed_policy_has_no_modes(gpushare: Run, train: None, tmp_path: Path) -> None:
    done = gpushare("run", "train.py 20", "train.py 20", "--policy", "temporal", "--summary", "s.json")
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "s.json").read_text())
    assert summary["modes"] == {} and summary["turns_s"] == 0
