"""How often an end of an iteration is marked. The doors can't tell: two marks with no allocation in between are one."""

import subprocess
import sys

import pytest

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
TWO_OPTIMIZERS = """
others = [torch.optim.Adam(model.parameters()), torch.optim.SGD(model.parameters(), lr=0.1)]
for _ in range(2):
    model(torch.ones(2, 4)).sum().backward()
    for each in (optimizer, *others):
        each.step()
        print(len(marks))
model(torch.ones(2, 4)).sum().backward()
others[0].step()
model(torch.ones(2, 4)).sum().backward()
others[1].step()
print(len(marks))
"""
IN_THE_PASS = """
model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(3)))
each = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}
for p in each:
    p.register_post_accumulate_grad_hook(lambda p: each[p].step())
for _ in range(3):
    model(torch.ones(2, 4)).sum().backward()
    print(len(marks))
"""
NO_PASS = """
others = [torch.optim.SGD(model.parameters(), lr=0.1) for _ in range(2)]
for p in model.parameters():
    p.grad = torch.ones_like(p)
for _ in range(3):
    for each in others:
        each.step()
        print(len(marks))
"""
INFERENCE = """
seen = []
model.weight.register_hook(lambda _: seen.append(torch._C._is_multithreading_enabled()))
torch.autograd.set_multithreading_enabled(False)
for gradients in (lambda loss: loss.backward(), lambda loss: torch.autograd.grad(loss, model.weight)):
    with torch.inference_mode(False):
        assert torch._C._is_multithreading_enabled(), "torch sets it"
        gradients(model(torch.ones(2, 4)).sum())
print(seen)
"""

# The class stands for torch's, whose graphs need a GPU.
REPLAYS = """
from gpushare.framework import cuda_replays
class Graph:
    def capture_begin(self, pool=None): pass
    def END(self): pass
    def replay(self): print("replay")
cuda_replays.watch(Graph)
def step():
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
def captured(body):
    graph = Graph()
    graph.capture_begin(pool=None)
    body()
    graph.END()
    print(len(marks))
    return graph
step()
whole, forward = captured(step), captured(lambda: model(torch.ones(2, 4)))
for _ in range(2):
    whole.replay()
    print(len(marks))
    forward.replay()
    print(len(marks))
whole.capture_begin()
whole.END()
whole.replay()
step()
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


def test_steps_that_follow_one_with_no_pass_between_belong_to_it() -> None:
    assert marks(TWO_OPTIMIZERS) == ["1", "1", "1", "2", "2", "2", "4"]
    assert marks(IN_THE_PASS) == ["1", "2", "3"]


def test_steps_without_any_pass_end_an_iteration_each_time_the_same_optimizer_comes() -> None:
    assert marks(NO_PASS) == ["1", "1", "2", "2", "3", "3"]


def test_gradients_beside_an_optimizer_are_none() -> None:
    assert marks(PENALTIES) == ["1", "2"]


# As torch 2.13 names it, and 2.15.
@pytest.mark.parametrize("end", ["capture_end", "capture_end_pre"])
def test_a_replay_of_a_captured_step_ends_an_iteration(end: str) -> None:
    looped = ["replay", "2", "replay", "2", "replay", "3", "replay", "3"]
    assert marks(REPLAYS.replace("END", end)) == ["1", "1", *looped, "replay", "4"]


def test_backward_stays_in_the_calling_thread_whatever_a_script_enters() -> None:
    assert marks(INFERENCE) == ["[False,", "False]"]
