"""Autocast keeps casts of weights: in a table of the job's own, and without a lock in hand while it casts."""

import json
from pathlib import Path

import pytest
from conftest import Run

DEEP = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(6)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(64, 512)
for step in range(80):
    with torch.autocast("cpu", torch.bfloat16):
        loss = model(x).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    print(step, loss.item())
"""
# Used at each time step: cast once, and its gradient summed in bfloat16.
RECURRENT = """
import pathlib, torch
torch.manual_seed(1)
cell = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
for step in range(120):
    hidden = torch.randn(16, 64)
    with torch.autocast("cpu", torch.bfloat16):
        for _ in range(12):
            hidden = torch.tanh(cell(hidden))
        loss = hidden.float().square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    print(step, loss.item(), cell.weight.grad.sum().item())
pathlib.Path("ended").touch()
"""
LEAVES = """
import pathlib, time, torch
while not pathlib.Path("ended").exists():
    with torch.autocast("cpu", torch.bfloat16):
        time.sleep(1e-4)
"""
NEVER_LEFT = """
import torch
torch.autocast("cpu", torch.bfloat16).__enter__()
model = torch.nn.Linear(1024, 1024)
print(model(torch.ones(8, 1024)).dtype)
"""


@pytest.mark.parametrize("script", [DEEP, RECURRENT])
def test_two_jobs_that_cast_their_weights(script: str, gpushare: Run, plain: Run, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(script)
    done = gpushare("run", "job.py", "job.py", "--log-dir", "logs", timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    expected = plain("job.py").stdout
    for name in ("job", "job-2"):
        assert (tmp_path / "logs" / f"{name}.out").read_text() == expected


def test_casts_stay_while_another_job_leaves_autocast(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    (tmp_path / "recurrent.py").write_text(RECURRENT)
    (tmp_path / "leaves.py").write_text(LEAVES)
    # Nobody waits, so without a table of its own the job would end, with other numbers.
    options = ("--policy", "unmanaged", "--log-dir", "logs")
    done = gpushare("run", "recurrent.py", "leaves.py", *options, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "logs" / "recurrent.out").read_text() == plain("recurrent.py").stdout


def test_what_is_kept_goes_with_the_job(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(NEVER_LEFT)
    done = gpushare("run", "job.py", "job.py", "--log-dir", "logs", "--summary", "s.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "logs" / "job.out").read_text() == "torch.bfloat16\n"
    jobs = json.loads((tmp_path / "s.json").read_text())["jobs"]
    assert [j["remaining_bytes"] for j in jobs] == [0, 0]
