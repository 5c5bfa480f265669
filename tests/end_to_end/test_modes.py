"""What a run says of its modes."""

import json
from pathlib import Path

import pytest
from conftest import TRAIN, Run


@pytest.mark.usefixtures("train")
def test_auto_is_the_default_and_says_which_mode_was_in_force(gpushare: Run, tmp_path: Path) -> None:
    done = gpushare("run", "train.py 5000", "train.py 5000", "--budget", "64MiB", "--summary", "s.json")
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
    assert ", where one after the other has 1" in done.stderr


def test_a_fixed_policy_has_no_modes(gpushare: Run, train: None, tmp_path: Path) -> None:
    done = gpushare("run", "train.py 20", "train.py 20", "--policy", "temporal", "--summary", "s.json")
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "s.json").read_text())
    assert summary["modes"] == {} and summary["turns_s"] == 0


def test_a_run_of_two_teaches_their_factor_and_a_plan_says_so(gpushare: Run, tmp_path: Path) -> None:
    # Both sleep for the most part, so that no load of the machine makes turns the better mode.
    for name, rows, sleeps_s in (("wide", 2_000, 0.02), ("train", 64, 0.01)):
        text = "import time\n" + TRAIN.format(rows=rows) + f"    time.sleep({sleeps_s})\n"
        (tmp_path / f"{name}.py").write_text(text)
    jobs = ("wide.py 250", "train.py 500")
    before = json.loads(gpushare("plan", *jobs, "--json", "--budget", "1GiB", "--iterations", "4").stdout)
    (pair,) = before["pairs"]
    assert pair["source"] == "measured" and pair["runs"] == 0
    assert pair["factor"] > 1 and pair["factor_of_second"] > 1  # both hold the GIL at times
    assert all(0.02 < job["threads"] < 1.5 for job in before["jobs"])  # one thread each, as measured
    for _ in range(
        3
    ):  # a run teaches nothing where the machine stalls in the beginning: they take turns then
        options = ("--budget", "1GB", "--summary", "s.json", "--policy", "zico")  # no whole pages
        done = gpushare("run", *jobs, *options)
        assert done.returncode == 0, done.stderr
        summary = json.loads((tmp_path / "s.json").read_text())
        assert "budget_at_end_bytes" not in summary and "at the end" not in done.stderr
        if summary["modes"]["zico"]["seconds"] >= 2:
            break
    found = summary["pair_factor"]
    assert found["runs"] >= 1 and 1 <= found["factor"] <= 16
    assert found["this_run"] == found["factor"] or found["runs"] > 1
    after = gpushare("plan", *jobs, "--budget", "1GiB", "--iterations", "4", "--policy", "zico")
    assert "wide beside train: " in after.stdout and "(learned from " in after.stdout
    options = ("--json", "--slowdown", "1.5", "--policy", "zico", "--iterations", "4")
    given = json.loads(gpushare("plan", *jobs, *options).stdout)
    assert given["pairs"][0]["source"] == "given" and given["pairs"][0]["factor"] == 1.5


def test_jobs_with_saved_profiles_that_load_for_long_begin_side_by_side(
    gpushare: Run, tmp_path: Path
) -> None:
    load = "import time; time.sleep(1.5)\n"
    (tmp_path / "loads.py").write_text(load + TRAIN.format(rows=64))
    for _ in range(2):  # the second time with what the first one has shown
        done = gpushare("run", "loads.py 5000", "loads.py 5000", "--budget", "64MiB", "--summary", "s.json")
        assert done.returncode == 0, done.stderr
    modes = json.loads((tmp_path / "s.json").read_text())["modes"]
    assert next(iter(modes)) == "zico" and modes["zico"]["yield"] > 0


@pytest.mark.parametrize("policy", ["auto", "zico", "waterwave", "greedy"])
def test_no_job_waits_for_the_scheduler_or_for_memory_where_everything_fits(
    gpushare: Run, tmp_path: Path, policy: str
) -> None:
    """Permits are published ahead; `python_grants` counts the doors that only a new one opened.

    All jobs are asleep for the most part. Where the machine stalls, turns may be taken for better all the same.
    """
    (tmp_path / "train.py").write_text("import time\n" + TRAIN.format(rows=64) + "    time.sleep(0.005)\n")
    jobs = ["train.py 150"] * 3
    done = gpushare("run", *jobs, "--budget", "512MiB", "--policy", policy, "--summary", "s.json")
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "s.json").read_text())
    assert all(job["iterations"] == 150 for job in summary["jobs"])
    grants = [job["python_grants"] for job in summary["jobs"]]
    assert grants == [0, 0, 0] or "temporal" in summary["modes"]
    assert [job["memory_waits"] for job in summary["jobs"]] == [0, 0, 0]
