"""Jobs that keep so much between iterations that fewer at once do more: some are copied out, and nothing shows it."""

import json
from pathlib import Path

from conftest import Run

# Keeps 12 MiB, comes to 24, and waits for the most part, so that iterations gain by running side by side.
KEEPS_HALF = """
import sys, time
import torch

torch.manual_seed(int(sys.argv[1]))
model = torch.nn.Linear(1024, 3072)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = torch.randn(64, 1024)
for step in range(int(sys.argv[2])):
    optimizer.zero_grad(set_to_none=True)
    loss = model(inputs).square().mean()
    time.sleep(0.005)
    loss.backward()
    time.sleep(0.02)
    optimizer.step()
    if step % 20 == 0:
        print(step, loss.item())
optimizer.zero_grad(set_to_none=True)
print("sum", model.weight.double().sum().item())
"""


def test_some_are_set_aside_and_all_come_to_the_same_end(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    (tmp_path / "half.py").write_text(KEEPS_HALF)
    jobs = [f"half.py {seed} 120" for seed in range(6)]
    done = gpushare("run", *jobs, "--budget", "90MiB", "--summary", "s.json", "--log-dir", "logs")
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "s.json").read_text())
    assert "fewer at once" in done.stdout and "a time, the others copied out" in done.stderr
    assert summary["modes"]["fewer"]["efficiency"] > 1.2
    assert sum(job["copies_out"] for job in summary["jobs"]) >= 2
    away = [job["waited_s"]["set-aside"] for job in summary["jobs"]]
    assert max(away) > 1 and away[0] == 0
    assert summary["pool_peak_bytes"] <= summary["budget_bytes"]
    for n, job in list(enumerate(jobs))[::2]:  # some of either half
        name = "half" if n == 0 else f"half-{n + 1}"
        assert (tmp_path / "logs" / f"{name}.out").read_text() == plain(*job.split()).stdout
