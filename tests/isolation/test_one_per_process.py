"""What torch has one of per process, in jobs that use it at the same time: each prints what it prints alone."""

from pathlib import Path

import pytest
from conftest import Run

# A job says when it has begun, and goes on until the other one has.
TOGETHER = """
import pathlib, sys, time
import torch

torch.manual_seed(3)
alone = len(sys.argv) == 1
if not alone:
    pathlib.Path(sys.argv[1]).touch()
    until = time.monotonic() + 60
    while not pathlib.Path(sys.argv[2]).exists() and time.monotonic() < until:
        time.sleep(0.01)
"""
JVP = (
    TOGETHER
    + """
model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
parameters = dict(model.named_parameters())
x = torch.randn(8, 16)


def loss(parameters):
    return torch.func.functional_call(model, parameters, (x,)).pow(2).mean()


for step in range(150):
    tangents = {name: torch.randn_like(p) for name, p in parameters.items()}
    value, slope = torch.func.jvp(loss, (parameters,), (tangents,))
    parameters = {name: p.detach() - 0.01 * slope.detach() * tangents[name] for name, p in parameters.items()}
    print(step, value.item(), slope.item())
hessian = torch.func.hessian(lambda v: v.sin().sum())(torch.arange(3.0))
print(hessian)
with torch.autograd.forward_ad.dual_level():
    dual = torch.autograd.forward_ad.make_dual(torch.ones(2), torch.full((2,), 2.0))
    print(torch.autograd.forward_ad.unpack_dual(dual * dual).tangent)
torch.autograd.forward_ad.enter_dual_level()  # and is left open
"""
)
MUTATES = (
    TOGETHER
    + """
for step in range(40):
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        a = torch.full((4,), 1.0 + step, requires_grad=True)
        b = a.clone()
        out = (b**2).sum()
        b.sin_()
        out.backward()
        print(step, a.grad)
"""
)
SPECTRAL = (
    TOGETHER
    + """
layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for step in range(300):
    loss = layer(layer(torch.randn(4, 8))).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, repr(loss.item()))
"""
)
CACHED = (
    TOGETHER
    + """
layer = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for step in range(300):
    h = torch.randn(4, 8)
    with torch.nn.utils.parametrize.cached():
        first = layer.weight
        for _ in range(4):
            h = torch.tanh(layer(h))
        assert layer.weight is first
        time.sleep(0.0005)
    assert layer.weight is not first
    loss = h.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, repr(loss.item()))
"""
)
PAIRS = {
    "levels of forward differentiation": (JVP, JVP),
    "mutation of saved tensors": (MUTATES, MUTATES),
    "a cache beside none": (CACHED, SPECTRAL),
    "two caches": (CACHED, CACHED),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_jobs_that_use_it_at_once(pair: tuple[str, str], gpushare: Run, plain: Run, tmp_path: Path) -> None:
    names = ("one", "other")
    for name, script in zip(names, pair, strict=True):
        (tmp_path / f"{name}.py").write_text(script)
    alone = {name: plain(f"{name}.py") for name in names}
    assert all(done.returncode == 0 and done.stdout for done in alone.values()), alone
    done = gpushare("run", "one.py here there", "other.py there here", "--log-dir", "logs")
    assert done.returncode == 0, done.stderr
    assert {name: (tmp_path / "logs" / f"{name}.out").read_text() for name in names} == {
        name: each.stdout for name, each in alone.items()
    }


LEFT_OPEN = """
import torch

layer = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(3, 3))
left_open = torch.nn.utils.parametrize.cached()
with torch.nn.utils.parametrize.cached():
    assert layer.weight is layer.weight
left_open.__enter__()
assert layer.weight is layer.weight
"""


def test_a_cache_that_is_left_open_ends_with_its_job(gpushare: Run, tmp_path: Path) -> None:
    """However late its generator is closed."""
    (tmp_path / "one.py").write_text(LEFT_OPEN)
    done = gpushare("run", *["one.py"] * 4)
    assert done.returncode == 0, done.stderr


READS_ARGUMENTS = """
import os, sys, torch

os.environ["FACTOR"] = sys.argv[1]

@torch.compile(backend="eager")
def compiled(x):
    return x * len(sys.argv) + (7 if sys.argv[1] == "5" else 9) + int(os.environ["FACTOR"])

print(compiled(torch.ones(2)))
"""


def test_what_compiled_functions_read(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    """Of modules that answer per job, whose own attributes are the host's."""
    (tmp_path / "reads.py").write_text(READS_ARGUMENTS)
    alone = [plain("reads.py", *arguments).stdout for arguments in (("5", "a", "b"), ("6",))]
    done = gpushare("run", "reads.py 5 a b", "reads.py 6", "--log-dir", "logs")
    assert done.returncode == 0, done.stderr
    assert [(tmp_path / "logs" / f"{name}.out").read_text() for name in ("reads", "reads-2")] == alone


COMPILES = """
import pathlib, sys, time
import torch

def meet(mine, other):
    pathlib.Path(mine).touch()
    while not pathlib.Path(other).exists():
        time.sleep(0.01)

@torch.compile(backend="eager")
def compiled(x):
    return torch.func.jvp(torch.sin, (x,), (torch.ones_like(x),))[1] if sys.argv[1] == "jvp" else x.sin()

x = torch.ones(3)
if sys.argv[1] == "jvp":
    meet("a", "b")
    try:
        print(compiled(x))
    except RuntimeError as error:
        print("refused" if "in the same run of gpushare" in str(error) else error)
else:
    with torch.autograd.forward_ad.dual_level():
        meet("b", "a")
        time.sleep(1)
        print(compiled(x))
"""


def test_who_has_the_compiler_does_not_wait_for_ever(gpushare: Run, tmp_path: Path) -> None:
    """The one waits for the other's level with the compiler in hand, for which the other one waits."""
    (tmp_path / "job.py").write_text(COMPILES)
    done = gpushare("run", "job.py jvp", "job.py level", timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "job-2 | tensor([0.8415, 0.8415, 0.8415])" in done.stdout
    assert "job | refused" in done.stdout or "job | tensor([0.5403, 0.5403, 0.5403])" in done.stdout, (
        done.stdout
    )


REFUSED = """
import pathlib, sys, time
import torch
from gpushare.framework import forward_ad

forward_ad.LONGEST_WAIT_S = 0.2
ones = torch.ones(2)
if sys.argv[1] == "has":
    with torch.autograd.forward_ad.dual_level():
        pathlib.Path("has").touch()
        while not pathlib.Path("refused").exists():
            time.sleep(0.01)
else:
    while not pathlib.Path("has").exists():
        time.sleep(0.01)
    try:
        torch.func.jvp(torch.sin, (ones,), (ones,))
    except RuntimeError as error:
        print(error)
    pathlib.Path("refused").touch()
print(torch.func.jvp(torch.sin, (ones,), (ones,)))
"""


def test_who_has_waited_for_too_long_is_told_why(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(REFUSED)
    done = gpushare("run", "job.py has", "job.py asks")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "job-2 | torch has one list of levels" in done.stdout
    assert done.stdout.count("| (tensor([0.8415, 0.8415]), tensor([0.5403, 0.5403]))") == 2, done.stdout


def test_a_level_that_is_left_open_ends_with_its_job(gpushare: Run, tmp_path: Path) -> None:
    """Whoever comes later has the first one again."""
    (tmp_path / "one.py").write_text("import torch\nprint(torch.autograd.forward_ad.enter_dual_level())\n")
    done = gpushare("run", "one.py", "one.py", "one.py")
    assert done.returncode == 0, done.stderr
    assert sorted(line for line in done.stdout.splitlines() if " | " in line) == [
        "one | 0",
        "one-2 | 0",
        "one-3 | 0",
    ]


EINSUM = """
import pathlib, sys, time
import torch

chosen = torch.backends.opt_einsum
three = [torch.arange(6.0).reshape(2, 3), torch.ones(3, 4), torch.ones(4, 5)]


def meet(mine, other):
    pathlib.Path(mine).touch()
    while not pathlib.Path(other).exists():
        time.sleep(0.01)


def show():
    print(chosen.is_available(), chosen.enabled, chosen.strategy, torch.einsum("ab,bc,cd->ad", three).tolist())


show()
if sys.argv[1] == "sets":
    with chosen.flags(enabled=True, strategy="greedy"):
        show()
    with chosen.flags(enabled=False):
        meet("set", "seen")
        show()
    show()
    chosen.strategy = "optimal"
    show()
    chosen.enabled = False
    meet("set again", "seen again")
else:
    for mine, other in (("seen", "set"), ("seen again", "set again")):
        while not pathlib.Path(other).exists():
            time.sleep(0.01)
        show()
        pathlib.Path(mine).touch()
show()
"""
# Stands in for the package, which need not be installed: torch asks it for a path.
OPT_EINSUM = """
def contract_path(equation, *operands, optimize):
    print("asked for", optimize)
    return [(0, 1), (0, 1)], None
"""


def test_the_order_of_products_of_einsum(
    gpushare: Run, plain: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "opt_einsum.py").write_text(OPT_EINSUM)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))
    (tmp_path / "einsum.py").write_text(EINSUM)
    files = [tmp_path / name for name in ("set", "seen", "set again", "seen again")]
    for file in files:
        file.touch()
    alone = [plain("einsum.py", how).stdout for how in ("sets", "asks")]
    assert "asked for greedy" in alone[0] and "asked for auto" in alone[1], alone
    for file in files:
        file.unlink()
    done = gpushare("run", "einsum.py sets", "einsum.py asks", "--log-dir", "logs")
    assert done.returncode == 0, done.stderr
    assert [(tmp_path / "logs" / f"{name}.out").read_text() for name in ("einsum", "einsum-2")] == alone
