"""How often an end of an iteration is marked. The doors can't tell: two marks with no allocation in between are one."""

import subprocess
import sys

JOB = """
from gpushare.native import library
library.load()
import sys, types, torch
from gpushare.framework import iterations
from gpushare.isolation import context
marks = []
iterations.install(marks.append)
main = types.ModuleType("__main__")
job = context.JobContext("job", 1, [], [], main, sys.stdin, sys.stdout, sys.stderr, {}, print)
context.bind(job)
iterations.begin(job)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
SCALED = """
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
for factor in (1.0, float("inf"), 1.0):
    optimizer.zero_grad()
    scaler.scale(model(torch.ones(2, 4)).sum() * factor).backward()
    scaler.step(optimizer)
    scaler.update()
    print(len(marks))
"""
PENALTIES = """
for _ in range(2):
    torch.autograd.grad(model(torch.ones(2, 4)).tanh().pow(2).sum(), model.weight)
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    print(len(marks))
"""


def marks(code: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-P", "-c", JOB + code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_step_of_a_grad_scaler_is_one_skipped_or_not() -> None:
    assert marks(SCALED) == ["1", "2", "3"]


def test_gradients_beside_an_optimizer_are_none() -> None:
    assert marks(PENALTIES) == ["1", "2"]
