"""Whether memory comes by lease, and how long a thread may keep the GIL, as a run shows it."""

import json
from pathlib import Path

import pytest
from conftest import Run

SCRIPT = """
import sys, torch
torch.manual_seed(0)
model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Tanh()) for _ in range(24)))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
for step in range(60):
    loss = model(torch.randn(16384, 32)).square().mean()  # 2 MiB for each activation
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("switch interval", sys.getswitchinterval())
"""


@pytest.mark.parametrize(("policy", "leased"), [("waterwave", True), ("zico", False)])
def test_waterwave_promises_segments(gpushare: Run, tmp_path: Path, policy: str, leased: bool) -> None:
    (tmp_path / "a.py").write_text(SCRIPT)
    done = gpushare(
        "run",
        "a.py",
        "a.py",
        "--budget",
        "180MiB",
        "--policy",
        policy,
        *(("--split-size", "16MiB") if leased else ()),
        "--summary",
        "s.json",
    )
    assert done.returncode == 0, done.stderr
    jobs = json.loads((tmp_path / "s.json").read_text())["jobs"]
    assert any(job["leases"] > 0 for job in jobs) == leased


def test_jobs_hold_each_other_up_for_less_than_threads_of_one_script_do(
    gpushare: Run, tmp_path: Path
) -> None:
    (tmp_path / "a.py").write_text("import sys; print('switch interval', sys.getswitchinterval())")
    alone = gpushare("run", "a.py", "--budget", "300MiB")
    assert "switch interval 0.005" in alone.stdout
    both = gpushare("run", "a.py", "a.py", "--budget", "300MiB")
    assert both.stdout.count("switch interval 0.0005") == 2
