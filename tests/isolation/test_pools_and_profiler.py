"""What packages have once per process and keep running: joblib's pool of processes, torch's profiler."""

import json
from pathlib import Path

from conftest import Run

POOL = """
import sys
import joblib

def size(n):
    return len(__file__) * 0 + n * int(sys.argv[1])

if __name__ == "__main__":
    for _ in range(2):
        print(joblib.Parallel(n_jobs=2)(joblib.delayed(size)(n) for n in range(4)))
"""
PROFILE = """
import pathlib, sys, time, torch
from torch.profiler import ProfilerActivity, profile

def wait(word):
    while not pathlib.Path(word).exists():
        time.sleep(0.005)

first = sys.argv[1] == "first"
wait("begun") if not first else None
with profile(activities=[ProfilerActivity.CPU]) as found:
    if first:
        pathlib.Path("begun").touch()
        time.sleep(0.5)  # the other one comes to its profile
    with torch.no_grad():
        for _ in range(3 if first else 5):
            torch.ones(4).sin()
print([event.count for event in found.key_averages() if event.key == "aten::sin"])
"""


def test_each_job_has_a_pool_of_joblib_that_ends_with_it(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    script = tmp_path / "pool.py"
    script.write_text(POOL)
    expected = {factor: plain(script, factor).stdout for factor in ("2", "3")}
    done = gpushare("run", f"{script} 2", f"{script} 3", "--log-dir", "logs")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "logs" / "pool.out").read_text() == expected["2"] == "[0, 2, 4, 6]\n" * 2
    assert (tmp_path / "logs" / "pool-2.out").read_text() == expected["3"]


def test_two_profiles_come_one_after_the_other(gpushare: Run, tmp_path: Path) -> None:
    script = tmp_path / "profiles.py"
    script.write_text(PROFILE)
    done = gpushare("run", f"{script} first", f"{script} then", "--log-dir", "logs")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "logs" / "profiles.out").read_text() == "[3]\n"
    assert (tmp_path / "logs" / "profiles-2.out").read_text() == "[5]\n"
    assert "profiles-2 waits until profiles has ended its profile" in done.stderr


def test_a_profile_that_is_left_open_ends_with_the_job(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "leaves.py").write_text(
        "import torch\np = torch.profiler.profile()\np.start()\nopen('begun', 'w').close()\ntorch.ones(3).sin()\n"
    )
    script = tmp_path / "profiles.py"
    script.write_text(PROFILE)
    done = gpushare("run", "leaves.py", f"{script} then", "--log-dir", "logs", "--summary", "s.json")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "logs" / "profiles.out").read_text() == "[5]\n"
    assert {job["status"] for job in json.loads((tmp_path / "s.json").read_text())["jobs"]} == {"ok"}
