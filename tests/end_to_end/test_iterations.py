"""How many iterations a script has, by how it makes its steps."""

import json
from pathlib import Path

import pytest
from conftest import Run

HEAD = """
import sys, torch
torch.manual_seed(0)
x, y = torch.randn(32, 16), torch.randn(32, 1)
model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
def lost(out):
    return (out - y).pow(2).mean()
"""
BY_GRAD = """
weights = list(model.parameters())
for step in range(12):
    loss = lost(model(x))
    gradients = torch.autograd.grad(loss, weights)
    with torch.no_grad():
        for weight, gradient in zip(weights, gradients):
            weight -= 0.1 * gradient
    print(step, loss.item())
"""
# One pass for each half of the weights; the graph is kept for the second.
BY_TWO = BY_GRAD.replace(
    "torch.autograd.grad(loss, weights)",
    "(*torch.autograd.grad(loss, weights[:2], retain_graph=True), *torch.autograd.grad(loss, weights[2:]))",
)
BY_FUNC = """
weights = {name: weight.detach() for name, weight in model.named_parameters()}
def loss_of(weights, *inputs):
    return lost(torch.func.functional_call(model, weights, inputs))
for step in range(12):
    FORM
    weights = {name: weight - 0.1 * gradients[name] for name, weight in weights.items()}
    print(step, loss.item())
"""
FORMS = {
    "grad": "gradients, loss = torch.func.grad_and_value(loss_of)(weights, x)",
    "vjp": "loss, back = torch.func.vjp(loss_of, weights, x); gradients, _ = back(torch.ones(()))",
    "vmap": "loss = loss_of(weights, x); each = torch.vmap(torch.func.grad(loss_of), (None, 0))(weights, x);"
    " gradients = {name: g.mean(0) for name, g in each.items()}",
    "nested": "loss = loss_of(weights, x); inner = lambda w: sum(g.pow(2).sum() for g in"
    " torch.func.grad(loss_of)(w, x).values()); gradients = torch.func.grad(inner)(weights)",
}
# An attack on the input before each step: parts of an iteration.
WITH_OPTIMIZER = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(12):
    attacked = x.clone()
    for _ in range(3):
        attacked.requires_grad_()
        (away,) = torch.autograd.grad(lost(model(attacked)), attacked)
        attacked = attacked.detach() + 0.01 * away.sign()
    loss = lost(model(attacked))
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    print(step, loss.item())
"""
# By hand, after a penalty that is made without a graph.
BACKWARD_BY_HAND = """
weights = list(model.parameters())
for step in range(12):
    loss = lost(model(x))
    norm = sum(g.norm() for g in torch.autograd.grad(loss, weights, retain_graph=True))
    loss.backward()
    with torch.no_grad():
        for weight in weights:
            weight -= 0.1 / (1 + norm) * weight.grad
            weight.grad = None
    print(step, loss.item())
"""
SCALED = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
for step in range(12):
    loss = lost(model(x))
    if step == 6:
        loss = loss * float("inf")
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item())
"""
# The compiler stops at the backward pass, and compiles what comes then by itself: the step, and functions of ours.
COMPILED = """
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
@torch.compile(backend="aot_eager")
def train(x):
    optimizer.zero_grad()
    loss = lost(model(x))
    loss.backward()
    optimizer.step()
    return loss
for step in range(12):
    print(step, train(x).item())
"""
SCRIPTS = {
    "grad": BY_GRAD,
    "two": BY_TWO,
    **{f"func_{name}": BY_FUNC.replace("FORM", form) for name, form in FORMS.items()},
    "with_optimizer": WITH_OPTIMIZER,
    "backward_by_hand": BACKWARD_BY_HAND,
    "scaled": SCALED,
    "compiled": COMPILED,
}


def test_an_iteration_for_each_step(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    for name, script in SCRIPTS.items():
        (tmp_path / f"{name}.py").write_text(HEAD + script)
    done = gpushare("run", *(f"{name}.py" for name in SCRIPTS), "--log-dir", "logs", "--summary", "s.json")
    assert done.returncode == 0, done.stdout + done.stderr
    for name in SCRIPTS:
        assert (tmp_path / "logs" / f"{name}.out").read_text() == plain(f"{name}.py").stdout
    counts = {j["name"]: j["iterations"] for j in json.loads((tmp_path / "s.json").read_text())["jobs"]}
    # The first by hand ends with the first backward pass.
    assert counts == {name: pytest.approx(12, abs=1) for name in SCRIPTS}


STEPS = """
optimizer = torch.optim.Adam(model.parameters())
for step in range(int(sys.argv[1])):
    optimizer.zero_grad(); lost(model(x)).backward(); optimizer.step()
"""
AFTER = """
with torch.no_grad():
    for _ in range(5):
        lost(model(torch.randn(32, 16)))
"""


def test_what_follows_the_last_step_is_no_iteration(gpushare: Run, tmp_path: Path) -> None:
    for name, script in {"ends": STEPS, "goes_on": STEPS + AFTER, "makes_none": AFTER}.items():
        (tmp_path / f"{name}.py").write_text(HEAD + script)
    commands = ("ends.py 20", "goes_on.py 20", "goes_on.py 2", "makes_none.py")
    done = gpushare("run", *commands, "--summary", "s.json")
    assert done.returncode == 0, done.stdout + done.stderr
    jobs = json.loads((tmp_path / "s.json").read_text())["jobs"]
    assert [job["iterations"] for job in jobs] == [20, 20, 2, 0]


def test_an_endless_script_without_optimizer_is_profiled(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text(HEAD + BY_GRAD.replace("range(12)", "iter(int, 1)"))
    done = gpushare("profile", "endless.py", timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
