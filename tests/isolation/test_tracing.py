"""Jobs that trace models while others call and trace theirs."""

from pathlib import Path

from conftest import Run

TRACE = """
import pathlib, sys, time, torch
from torch import nn

how, here, *others = sys.argv[1:]
torch.manual_seed(0)
model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(30)])
x, calls = torch.ones(1, 4), 0
pathlib.Path(here).touch()
while not all(pathlib.Path(other).exists() for other in others):
    time.sleep(0.001)
until = time.monotonic() + 1.5
with torch.no_grad():
    while time.monotonic() < until:
        if how == "fx":
            assert len(torch.fx.symbolic_trace(model).graph.nodes) == 32
        elif how == "jit":
            assert torch.equal(torch.jit.trace(model, x)(x), model(x))
        else:
            assert type(model(x)) is torch.Tensor and not torch.fx._symbolic_trace.is_fx_tracing()
        calls += 1
print(calls > 0)
"""


def test_each_job_sees_its_own_traces_only(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "trace.py").write_text(TRACE)
    done = gpushare(
        "run", "trace.py fx a b c d", "trace.py fx b a c d", "trace.py call c a b d", "trace.py jit d a b c"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("| True") == 4


SCRIPTED = """
import torch
from torch.nn import functional

@torch.jit.script
def loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(x, y) + functional.softmax(x, 0).sum()

print(loss(torch.zeros(2, 2), torch.ones(2, dtype=torch.long)).item())
"""


def test_what_may_warn_can_be_scripted(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    (tmp_path / "scripted.py").write_text(SCRIPTED)
    expected = plain("scripted.py")
    assert expected.returncode == 0, expected.stderr
    for jobs in (("scripted.py",), ("scripted.py", "scripted.py")):
        done = gpushare("run", *jobs, "--log-dir", "logs")
        assert done.returncode == 0, done.stdout + done.stderr
        assert (tmp_path / "logs" / "scripted.out").read_text() == expected.stdout


INTERFACES = """
import time, torch
time.sleep(2 - time.time() % 2)  # all begin at the same moment
"""
INTERFACE = """
@torch.jit.interface
class Cell{}(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor: pass
"""


def test_jobs_that_define_the_same_interfaces_at_once(gpushare: Run, tmp_path: Path) -> None:
    """Torch knows them by their names, for the whole process, and gives the second one another name."""
    (tmp_path / "defines.py").write_text(INTERFACES + "".join(INTERFACE.format(n) for n in range(300)))
    done = gpushare("run", "defines.py", "defines.py", "defines.py", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
