"""Jobs are set aside, copied out at their doors, and come back: nothing that they do shows it."""

import json
from pathlib import Path

from conftest import TRAIN, Run

# Job 1 says who is set aside, as the scheduler does under `auto`: first the second job, then the third, then nobody.
TELLS = """
import sys, time
import torch
from gpushare.native import doors

def told(step):
    if step % 20 == 10:
        doors.aside_set([2] if step % 40 == 10 else [3])

torch.manual_seed(1)
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = torch.randn(64, 64)
away = set()
for step in range(200):
    told(step)
    optimizer.zero_grad()
    model(inputs).square().mean().backward()
    optimizer.step()
    away.update(doors.copied_out())
    time.sleep(0.02)
print("away", sorted(away))
doors.aside_set([])
"""


def test_jobs_that_are_set_aside_come_to_the_same_end(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    (tmp_path / "tells.py").write_text(TELLS)
    step = TRAIN.format(rows=4_000).replace("    optimizer.zero", "    time.sleep(0.01); optimizer.zero")
    (tmp_path / "job.py").write_text("import time, torch\ntorch.manual_seed(1)\n" + step)
    output = ("--policy", "greedy", "--summary", "s.json", "--log-dir", "logs", "--explain")
    done = gpushare("run", "tells.py", "job.py 150", "job.py 150", "--budget", "100MiB", *output)
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
