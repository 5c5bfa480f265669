"""What torch's compiler remembers of code that jobs share: one script with other sizes, modules of torch."""

import re
from pathlib import Path

import pytest
import torch
from conftest import Run

SIZES = """
import pathlib, sys, time, torch
size, first = int(sys.argv[1]), len(sys.argv) == 4
while not first and not pathlib.Path(sys.argv[2]).exists():
    time.sleep(0.005)

def show(graph, inputs):
    print([tuple(i.shape) if isinstance(i, torch.Tensor) else i for i in inputs])
    return graph

@torch.compile(backend=show)
def wave(x):
    return x.sin() + 1

model = torch.compile(torch.nn.Sequential(torch.nn.Linear(4, size)), backend=show)
with torch.no_grad():
    wave(torch.ones(size))
    model(torch.ones(size, 4))
pathlib.Path(sys.argv[2]).touch()
"""
MODELS = """
import sys, torch
for width in range(2, 8):
    model = torch.compile(torch.nn.Sequential(torch.nn.Linear(4, width)), backend="eager")
    model(torch.ones(2, 4))
torch._dynamo.config.recompile_limit = 1
plain = torch.compile(torch.nn.Sequential(torch.nn.Linear(4, 9)), backend="eager")
if sys.argv[1] == "more":
    plain(torch.ones(2, 4))
"""


def test_sizes_of_one_job_are_not_the_others(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    (tmp_path / "sizes.py").write_text(SIZES)
    alone = [plain("sizes.py", size, "other", "first").stdout for size in (16, 8)]
    done = gpushare("run", "sizes.py 16 seen first", "sizes.py 8 seen", "--log-dir", "logs")
    assert done.returncode == 0, done.stderr
    assert [(tmp_path / "logs" / f"{name}.out").read_text() for name in ("sizes", "sizes-2")] == alone


@pytest.mark.skipif(
    not hasattr(torch._C._dynamo.eval_frame, "set_eval_frame_isolate_recompiles_id"),
    reason="this torch has no regions for compiled code: jobs that compile torch's modules alike share one limit",
)
def test_the_recompile_limit_is_each_jobs_own(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text(MODELS)
    done = gpushare("run", "models.py few", "models.py few", "models.py more", "--log-dir", "logs")
    assert done.returncode == 0, done.stderr
    told = [(tmp_path / "logs" / f"models{n}.err").read_text() for n in ("", "-2", "-3")]
    slow = r".*Guards may run slower on Python 3\.13\.0.*\n.*\n"
    assert [re.sub(slow, "", text) for text in told[:2]] == ["", ""]
    assert "torch._dynamo hit config.recompile_limit (1)" in told[2]


PARTS = "SCALE = {}\ndef scaled(x):\n    return x * SCALE\n"
CHANGES = """
import pathlib, sys, time, torch, parts
first = len(sys.argv) == 3
while not first and not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.005)

@torch.compile(backend="eager")
def step(x):
    return parts.scaled(x) + 1

print(step(torch.ones(2)).tolist())
if not first:
    parts.SCALE = 10.0
    print(step(torch.ones(2)).tolist())
pathlib.Path(sys.argv[1]).touch()
while not pathlib.Path(sys.argv[1] + "-ends").exists():  # the first one's module lives as long
    time.sleep(0.005)
    if not first:
        pathlib.Path(sys.argv[1] + "-ends").touch()
"""


def test_modules_of_one_name(gpushare: Run, tmp_path: Path) -> None:
    """What a job changes in its own module is seen by its compiled code, though another one has compiled such a one."""
    for name, scale in (("a", 2.0), ("b", 3.0)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "parts.py").write_text(PARTS.format(scale))
        (tmp_path / name / f"{name}.py").write_text(CHANGES)
    seen = tmp_path / "seen"
    done = gpushare("run", f"a/a.py {seen} first", f"b/b.py {seen}", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "logs" / "a.out").read_text() == "[3.0, 3.0]\n"
    assert (tmp_path / "logs" / "b.out").read_text() == "[4.0, 4.0]\n[11.0, 11.0]\n"


MAKES = """
import pathlib, sys, time, torch

class Makes(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(3))

    def forward(self, x):
        for layer in self.layers[:2]:  # a new list of modules
            x = layer(x)
        return x

time.sleep(float(sys.argv[1]))
print(torch.compile(Makes(), backend="eager", fullgraph=True)(torch.ones(2, 8)).shape)
pathlib.Path(sys.argv[0] + sys.argv[1]).touch()
try:
    torch.distributions.Normal(torch.zeros(1), -torch.ones(1))
    print("the compiler has switched the checks off")
except ValueError:
    print("checked")
"""
CHECKS = """
import pathlib, time, torch
while not all(pathlib.Path(f"makes.py{number}").exists() for number in (0, 1)):
    time.sleep(0.01)
try:
    torch.distributions.Normal(torch.zeros(1), -torch.ones(1))
except ValueError:
    print("checked")
"""


def test_what_the_compiler_assigns_to_torch(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    """Modules may be made in what is compiled, in each of two jobs; who does not compile has its checks."""
    (tmp_path / "makes.py").write_text(MAKES)
    (tmp_path / "checks.py").write_text(CHECKS)
    expected = plain("makes.py", "0").stdout
    done = gpushare("run", "makes.py 0", "makes.py 1", "checks.py", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    told = [(tmp_path / "logs" / f"{name}.out").read_text() for name in ("makes", "makes-2", "checks")]
    assert told == [expected, expected, "checked\n"]


REGISTERS = """
import sys, time, torch
@torch._dynamo.register_backend
def of_script(graph, inputs):
    print(sys.argv[1])
    return graph
time.sleep(0.5)
torch.compile(torch.sin, backend="of_script")(torch.ones(2))
"""


def test_back_ends_by_name(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "registers.py").write_text(REGISTERS)
    done = gpushare("run", "registers.py one", "registers.py other")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "registers | one" in done.stdout and "registers-2 | other" in done.stdout


SEQUENCE = """
import pathlib, sys, time, torch
after, mark = sys.argv[1:]
while after != "-" and not pathlib.Path(after).exists():
    time.sleep(0.01)

class Scaled(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * len(mark)

torch.manual_seed(0)
step = torch.compile(torch.nn.Sequential(torch.nn.Linear(4, 4), Scaled()), backend="eager")
print(step(torch.ones(2, 4)).sum().item() / len(mark))
time.sleep(0.3)
import atexit
atexit.register(pathlib.Path(mark).touch)
"""


def test_code_of_scripts_in_code_that_they_share(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    """Two at once, and a third one when they have ended."""
    (tmp_path / "sequence.py").write_text(SEQUENCE)
    told = plain("sequence.py", "-", "x").stdout
    (tmp_path / "x").unlink()
    done = gpushare(
        *(
            "run",
            "sequence.py - x",
            "sequence.py - xx",
            "sequence.py x xxx",
            "--log-dir",
            "logs",
            "--budget",
            "64MiB",
        )
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert [(tmp_path / "logs" / f"sequence{n}.out").read_text() for n in ("", "-2", "-3")] == [told] * 3
