"""What torch's compiler remembers of code that jobs share: one script with other sizes, modules of torch."""

from pathlib import Path

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


def test_the_recompile_limit_is_each_jobs_own(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text(MODELS)
    done = gpushare("run", "models.py few", "models.py few", "models.py more", "--log-dir", "logs")
    assert done.returncode == 0, done.stderr
    told = [(tmp_path / "logs" / f"models{n}.err").read_text() for n in ("", "-2", "-3")]
    assert told[:2] == ["", ""]
    assert "torch._dynamo hit config.recompile_limit (1)" in told[2]
