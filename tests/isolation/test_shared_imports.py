"""Installed packages that do at their import what only one script at a time could bear."""

from pathlib import Path

import pytest
from conftest import Run
from packages_installed import write_package

REPLACES = """
import sys, time, types
time.sleep(0.5)
class Lazy(types.ModuleType):
    thing = "of the module that stays"
sys.modules[__name__] = Lazy(__name__)
sys.modules[__name__].__spec__ = __spec__
time.sleep(0.5)
"""
BOOTSTRAPS = """
import importlib, os, sys
here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(here, "inner"))
outer = sys.modules.pop(__name__)
inner = importlib.import_module(__name__)
sys.path.remove(os.path.join(here, "inner"))
sys.modules[__name__] = outer
value = inner.value
"""


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed ones with compiled code, which all jobs share."""
    site = tmp_path / "site"
    write_package(site, "replaces", {"replaces.py": REPLACES}, compiled=True)
    files = {
        "bootstraps/__init__.py": BOOTSTRAPS,
        "bootstraps/inner/bootstraps.py": "value = 'of the inner one'\n",
    }
    write_package(site, "bootstraps", files, compiled=True)
    monkeypatch.setenv("PYTHONPATH", str(site))


@pytest.mark.parametrize(
    "statement", ["from replaces import thing", "import replaces; thing = replaces.thing"]
)
def test_a_module_that_replaces_itself_is_seen_by_others_when_it_has(
    packages: None, gpushare: Run, tmp_path: Path, statement: str
) -> None:
    (tmp_path / "job.py").write_text(
        f"import sys, time\ntime.sleep(float(sys.argv[1]))\n{statement}\nprint(thing)\n"
    )
    done = gpushare("run", *(f"job.py {delay}" for delay in (0, 0.25, 0.75)))  # before it has, and after
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("of the module that stays") == 3


def test_a_package_that_finds_its_own_name_in_its_folder(
    packages: None, gpushare: Run, tmp_path: Path
) -> None:
    found = "bootstraps.value, bootstraps is sys.modules['bootstraps']"
    (tmp_path / "job.py").write_text(f"import bootstraps, sys\nprint({found})\n")
    done = gpushare("run", "job.py", "job.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("of the inner one True") == 2


EXPORTS = """
import sys, torch
torch.manual_seed(int(sys.argv[1]))
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for epoch in range(3):
    for step in range(30):
        loss = model(torch.randn(32, 64)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    name = f"model-{sys.argv[1]}-{epoch}.pt2"
    torch.export.save(torch.export.export(model, (torch.randn(2, 64),)), name)
    print(epoch, loss.item(), torch.export.load(name).module()(torch.ones(2, 64)).sum().item())
"""


def test_two_jobs_that_export(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    (tmp_path / "exports.py").write_text(EXPORTS)
    alone = [plain("exports.py", seed).stdout for seed in (0, 1)]
    done = gpushare("run", "exports.py 0", "exports.py 1", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [(tmp_path / "logs" / f"{name}.out").read_text() for name in ("exports", "exports-2")] == alone


BLOCK = """
import warnings
with warnings.catch_warnings():
    warnings.simplefilter("always", ResourceWarning)
    warnings.filterwarnings("error", "seldom")
warnings.filterwarnings("ignore", "often")
"""
WARNS = """
import pathlib, sys, time, warnings
if sys.argv[1] == "imports":
    import filters_warnings
    pathlib.Path("imported").touch()
while not pathlib.Path("imported").exists():
    time.sleep(0.01)
before = [item[:3] for item in warnings.filters]
print(any(item[2] is ResourceWarning and item[0] == "always" for item in before), before[0][0])
warnings.warn("seldom", UserWarning)
warnings.warn("often", UserWarning)
"""


def test_a_block_of_filters_while_a_shared_module_is_imported(
    gpushare: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends for all; what is set beside it holds for all."""
    write_package(tmp_path / "site", "filters_warnings", {"filters_warnings.py": BLOCK}, compiled=True)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    (tmp_path / "job.py").write_text(WARNS)
    done = gpushare("run", "job.py imports", "job.py waits", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("job", "job-2"):
        assert (tmp_path / "logs" / f"{name}.out").read_text() == "False ignore\n"
        told = (tmp_path / "logs" / f"{name}.err").read_text()
        assert "seldom" in told and "UserWarning: often" not in told


GENERATES = """
import sys, types
kept = []
def generate():
    module = types.ModuleType("generated_code")
    exec("def run(): return 3", vars(module))
    sys.modules[module.__name__] = module
    kept.append(module)
"""


def test_what_a_shared_module_generates_for_a_job_is_for_all(
    gpushare: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As torch's compiler keeps the code that it has made, also when that job has ended."""
    write_package(tmp_path / "site", "generates", {"generates.py": GENERATES}, compiled=True)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    (tmp_path / "one.py").write_text("import generates\ngenerates.generate()\nopen('ends', 'w').close()\n")
    (tmp_path / "other.py").write_text(
        "import generates, os, time\nwhile not os.path.exists('ends'): time.sleep(0.01)\ntime.sleep(1)\n"
        "print(generates.kept[0].run(), generates.kept[0].__name__)\n"
    )
    done = gpushare("run", "one.py", "other.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "other | 3 generated_code" in done.stdout


EXPORTS_ALL_ALONG = """
import pathlib
import torch

model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
pathlib.Path("exports").touch()
for number in range(12):
    exported = torch.export.export(model, (torch.ones(2, 8),)).run_decompositions()
    print(number, [str(node.target) for node in exported.graph.nodes], flush=True)
pathlib.Path("exported").touch()
"""
ATTENDS = """
import hashlib, pathlib, sys, time
import torch

torch.manual_seed(0)
attention = torch.nn.MultiheadAttention(128, 4, batch_first=True).eval()
values, seen = torch.randn(7, 33, 128), set()
while len(sys.argv) > 1 and not pathlib.Path("exports").exists():
    time.sleep(0.01)
with torch.no_grad():
    while True:
        out = attention(values, values, values, need_weights=False)[0]
        seen.add((hashlib.md5(out.contiguous().numpy().tobytes()).hexdigest(), torch.compiler.is_exporting()))
        if len(sys.argv) == 1 or pathlib.Path("exported").exists():
            break
print(seen)
"""


def test_an_export_is_not_seen_by_another_job(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    """Attention, and what torch's compiler has disabled, ask whether there is one."""
    (tmp_path / "attends.py").write_text(ATTENDS)
    (tmp_path / "exports.py").write_text(EXPORTS_ALL_ALONG)
    alone = {name: plain(f"{name}.py").stdout for name in ("attends", "exports")}
    for name in ("exports", "exported"):
        (tmp_path / name).unlink()
    done = gpushare("run", "attends.py beside", "exports.py", "--log-dir", "logs")
    assert done.returncode == 0, done.stderr
    assert {name: (tmp_path / "logs" / f"{name}.out").read_text() for name in alone} == alone


def test_two_jobs_that_decompose(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    """Which replaces kernels of torch's operators meanwhile."""
    (tmp_path / "exports.py").write_text(EXPORTS_ALL_ALONG)
    alone = plain("exports.py").stdout
    done = gpushare("run", "exports.py", "exports.py", "--log-dir", "logs")
    assert done.returncode == 0, done.stderr
    assert [(tmp_path / "logs" / f"{name}.out").read_text() for name in ("exports", "exports-2")] == [
        alone
    ] * 2
