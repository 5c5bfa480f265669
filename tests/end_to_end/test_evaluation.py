"""A job that evaluates for long takes turns meanwhile, and what it prints is what it prints alone."""

import json
from pathlib import Path

from conftest import Run

HEAD = """
import sys, torch
torch.manual_seed(0)
model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()) for _ in range(8)))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
def batch():
    return torch.randn(2048, 64)
def train(steps):
    for step in range(steps):
        loss = model(batch()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield step, loss.item()
"""
EVALUATES = """
for epoch in range(2):
    print("trained", list(train(6)), flush=True)
    with torch.no_grad():
        print("evaluated", sum(model(batch()).sum().item() for _ in range(150)), flush=True)
"""
TRAINS = "for step, loss in train(250): print('step', step, loss, flush=True)"
ITERATIONS = 12  # of the one that evaluates; its evaluation is none


def test_another_job_goes_on_while_one_evaluates(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    (tmp_path / "evaluates.py").write_text(HEAD + EVALUATES)
    (tmp_path / "trains.py").write_text(HEAD + TRAINS)
    command = ["run", "evaluates.py", "trains.py", "--budget", "200MiB", "--policy", "temporal"]
    done = gpushare(*command, "--summary", "s.json")
    assert done.returncode == 0, done.stderr
    lines = [line.partition(" | ")[2] for line in done.stdout.splitlines() if " | " in line]
    evaluates = [i for i, line in enumerate(lines) if line.startswith(("trained", "evaluated"))]
    between = lines[evaluates[0] : evaluates[1]], lines[evaluates[2] : evaluates[3]]
    # One turn for each, else: the one before the evaluation.
    assert max(len(steps) for steps in between) > 25

    alone = [plain(name).stdout.splitlines() for name in ("evaluates.py", "trains.py")]
    assert [lines[i] for i in evaluates] == alone[0]
    assert [line for line in lines if line.startswith("step")] == alone[1]

    evaluating, training = json.loads((tmp_path / "s.json").read_text())["jobs"]
    assert training["iterations"] == 250
    assert training["batches_evaluated"] == 0
    assert abs(evaluating["iterations"] - ITERATIONS) <= 1
    assert evaluating["batches_evaluated"] > 50
    assert evaluating["iteration_kinds"] < 8


def test_an_evaluation_is_cut_at_the_same_places_in_each_run(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "evaluates.py").write_text(HEAD + EVALUATES)
    found = []
    for policy in ("temporal", "zico", "unmanaged"):
        done = gpushare(
            "run", "evaluates.py", "--budget", "200MiB", "--policy", policy, "--summary", "s.json"
        )
        assert done.returncode == 0, done.stderr
        job = json.loads((tmp_path / "s.json").read_text())["jobs"][0]
        found.append((job["iterations"], job["batches_evaluated"]))
    assert found[0] == found[1]
    assert found[2] == (found[0][0], 0)
