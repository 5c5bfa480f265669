"""Scripts whose iterations are not alike, two of each in less memory than both need: they print what plain python
prints, inside the budget, and their kinds of iterations are told apart where there are any.
"""

import json
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import Run

HEAD = """
import torch
torch.manual_seed(0)
def net(layers):
    return torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Tanh()) for _ in range(layers)))
def batch(rows=8192):
    return torch.randn(rows, 32)
model = net(24)
optimizer = torch.optim.Adam(model.parameters(), 1e-4)
def step(loss, optimizer=optimizer):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""
GAN = """
generator = net(12)
of_generator = torch.optim.Adam(generator.parameters(), 1e-4)
for _ in range(20):
    step(model(batch()).mean() - model(generator(batch()).detach()).mean())
    step(model(generator(batch())).mean(), of_generator)
"""
ACCUMULATION = """
for _ in range(15):
    for micro in range(4):
        loss = model(batch()).square().mean() / 4
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item())
"""
EVALUATION = """
for epoch in range(4):
    for _ in range(8):
        step(model(batch()).square().mean())
    with torch.no_grad():
        print(sum(model(batch()).mean().item() for _ in range(20)))
"""
GROWING = """
for n in range(40):
    step(model(batch(4096 + 200 * n)).square().mean())
"""
RESIZING = """
for n in range(42):
    step(model(batch((2048, 4096, 8192)[n // 14])).square().mean())
"""
LAST_BATCH = """
data = torch.utils.data.TensorDataset(batch(34768))
for epoch in range(8):
    for rows, in torch.utils.data.DataLoader(data, 8192, shuffle=True):
        step(model(rows).square().mean())
"""


class Style(NamedTuple):
    script: str
    kinds: int  # at least
    budget: str = "48MiB"


STYLES = {
    "gan": Style(GAN, 2, "88MiB"),
    "accumulation": Style(ACCUMULATION, 2),
    "evaluation": Style(EVALUATION, 2),
    "growing": Style(GROWING, 1, "72MiB"),  # each one is new
    "resizing": Style(RESIZING, 2),
    "last_batch": Style(LAST_BATCH, 2),
}


@pytest.mark.parametrize("name", STYLES)
def test_two_of_a_style_share_what_is_too_small_for_both(
    name: str, gpushare: Run, plain: Run, tmp_path: Path
) -> None:
    style = STYLES[name]
    (tmp_path / f"{name}.py").write_text(HEAD + style.script)
    alone = plain(f"{name}.py")
    assert alone.returncode == 0, alone.stderr
    done = gpushare(
        *("run", f"{name}.py", f"{name}.py", "--budget", style.budget, "--policy", "zico"),
        *("--log-dir", "logs", "--summary", "s.json"),
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "s.json").read_text())
    assert summary["pool_peak_bytes"] <= summary["budget_bytes"]
    jobs = summary["jobs"]
    assert sum(job["held_peak_bytes"] for job in jobs) > summary["budget_bytes"], "both would have fitted"
    for job in jobs:
        assert (tmp_path / "logs" / f"{job['name']}.out").read_text() == alone.stdout
        assert job["iteration_kinds"] >= style.kinds
