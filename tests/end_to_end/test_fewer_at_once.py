"""Jobs are set aside, copied out at their doors, and come back: nothing that they do shows it."""

import json
from pathlib import Path

from conftest import TRAIN, Run

TELLS = Path(__file__).parent / "gpu_jobs" / "tells.py"


def test_jobs_that_are_set_aside_come_to_the_same_end(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    step = TRAIN.format(rows=4_000).replace("    optimizer.zero", "    time.sleep(0.01); optimizer.zero")
    (tmp_path / "job.py").write_text("import time, torch\ntorch.manual_seed(1)\n" + step)
    output = ("--policy", "greedy", "--summary", "s.json", "--log-dir", "logs", "--explain")
    done = gpushare("run", f"{TELLS} cpu", "job.py 150", "job.py 150", "--budget", "100MiB", *output)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "logs" / "tells.out").read_text() == "away [2, 3]\n"
    expected = plain("job.py", "150").stdout
    for name in ("job", "job-2"):
        assert (tmp_path / "logs" / f"{name}.out").read_text() == expected
    first, *jobs = json.loads((tmp_path / "s.json").read_text())["jobs"]
    assert first["copies_out"] == 0 and first["waited_s"]["set-aside"] == 0
    for job in jobs:
        assert job["copies_out"] >= 1 and job["waited_s"]["set-aside"] > 0.1
    assert "fewer jobs at once did more" in done.stdout
