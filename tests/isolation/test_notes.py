"""What can't be isolated is told: which jobs, what, and what to do."""

import json
from pathlib import Path

import pytest
from conftest import Run
from packages_installed import write_package

MEET = """
import pathlib, sys, time
def meet(other):
    pathlib.Path(sys.argv[1]).touch()
    while not pathlib.Path(other).exists():
        time.sleep(0.005)
"""


def test_the_first_conflict_of_a_switch_is_named(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "finds.py").write_text(
        MEET + "import torch\nmeet('b')\ntorch.autograd.set_detect_anomaly(True)\n"
        "torch.autograd.set_detect_anomaly(True)\ntime.sleep(0.5)\n"
    )
    (tmp_path / "other.py").write_text(
        MEET + "import torch\nmeet('a')\n"
        "while not torch.is_anomaly_enabled(): time.sleep(0.005)\n"
        "while torch.is_anomaly_enabled(): time.sleep(0.005)\n"
        "print('back')\n"
    )
    done = gpushare("run", "finds.py a", "other.py b")
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if "anomaly detection" in line]
    assert len(told) == 1
    assert "finds sets anomaly detection to True" in told[0]
    assert "other (False)" in told[0] and "one after the other" in told[0]
    assert "other | back" in done.stdout


def test_what_python_has_read_already_is_told(gpushare: Run, tmp_path: Path) -> None:
    """Of a job file; where a script sets it, it is too late for itself under plain python as well."""
    (tmp_path / "sets.py").write_text("import os\nos.environ['PYTHONHASHSEED'] = '1'\n")
    (tmp_path / "jobs.toml").write_text(
        '[[job]]\ncommand = "sets.py"\nenv = {PYTHONHASHSEED = "0", A = "b"}\n'
    )
    done = gpushare("run", "-f", "jobs.toml")
    assert done.returncode == 0, done.stderr
    (told,) = (line for line in done.stderr.splitlines() if "PYTHONHASHSEED" in line)
    assert "sets sets PYTHONHASHSEED=0, which Python has read already: set it before gpushare run" in told


def test_switches_that_are_split_are_not_told(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "sets.py").write_text(
        MEET
        + "import torch\ntorch.set_default_dtype(torch.float64)\ntorch.use_deterministic_algorithms(True)\n"
        "torch.backends.cudnn.benchmark = True\nmeet('b')\ntime.sleep(0.3)\n"
    )
    (tmp_path / "other.py").write_text(MEET + "import torch\nmeet('a')\nprint(torch.tensor(1.0).dtype)\n")
    done = gpushare("run", "sets.py a", "other.py b")
    assert done.returncode == 0, done.stderr
    assert "other | torch.float32" in done.stdout
    assert "one after the other" not in done.stderr


INTEROP = """
import sys, torch
torch.set_num_threads(1)
torch.set_num_interop_threads(int(sys.argv[1]))
print(torch.get_num_interop_threads())
try:
    torch.set_num_interop_threads(1)
except RuntimeError as error:
    print(error)
"""


def test_each_job_may_set_the_number_of_interop_threads_once(
    gpushare: Run, plain: Run, tmp_path: Path
) -> None:
    (tmp_path / "sets.py").write_text(INTEROP)
    done = gpushare("run", "sets.py 1", "sets.py 1", "--log-dir", "logs")
    assert done.returncode == 0 and "inter-op" not in done.stderr, done.stdout + done.stderr
    expected = plain("sets.py", "1").stdout
    for name in ("sets", "sets-2"):
        assert (tmp_path / "logs" / f"{name}.out").read_text() == expected
    differing = gpushare("run", "sets.py 1", "sets.py 3")
    assert differing.returncode == 0, differing.stdout + differing.stderr
    told = [line for line in differing.stderr.splitlines() if "inter-op" in line]
    assert len(told) == 1 and "sets the number of inter-op threads to" in told[0]


SETS = "import torch\ntorch.set_float32_matmul_precision('high')\ntorch.backends.cudnn.deterministic = True\n"


@pytest.mark.parametrize("compiled", [True, False])
def test_what_a_package_sets_when_it_is_imported(
    compiled: bool, gpushare: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds for all if there is one copy of the package, and for the job if that has its own."""
    write_package(tmp_path / "site", "sets_precision", {"sets_precision.py": SETS}, compiled=compiled)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    see = "print(torch.get_float32_matmul_precision(), torch.backends.cudnn.deterministic)\n"
    (tmp_path / "imports.py").write_text(
        MEET
        + "import torch\nmeet('b')\nimport sets_precision\n"
        + see
        + "pathlib.Path('c').touch()\ntime.sleep(0.3)\n"
    )
    (tmp_path / "other.py").write_text(
        MEET + "import torch\ntorch.set_float32_matmul_precision('medium')\nmeet('c')\n" + see
    )
    done = gpushare("run", "imports.py a", "other.py b")
    assert done.returncode == 0, done.stderr
    assert "imports | high True" in done.stdout
    assert f"other | medium {compiled}" in done.stdout


def test_a_variable_that_comes_too_late_is_named(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text(
        "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '3'\nos.environ['CUBLAS_WORKSPACE_CONFIG'] = ':16:8'\n"
    )
    done = gpushare("run", "late.py", "--device", "cpu")
    assert "late sets CUDA_VISIBLE_DEVICES=3, which torch has read already" in done.stderr
    assert "CUBLAS_WORKSPACE_CONFIG" not in done.stderr, "of a GPU, without which it does nothing"


def test_a_hard_exit_ends_one_job(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "leaves.py").write_text("import os\nprint('out', flush=True)\nos._exit(7)\n")
    (tmp_path / "stays.py").write_text("import time\ntime.sleep(0.5)\nprint('there')\n")
    done = gpushare("run", "leaves.py", "stays.py", "--summary", "s.json")
    assert done.returncode == 1
    assert "leaves called os._exit(7): only this job ends" in done.stderr
    assert "stays | there" in done.stdout
    codes = [j["exit_code"] for j in json.loads((tmp_path / "s.json").read_text())["jobs"]]
    assert codes == [7, 0]


def test_a_second_process_group_is_refused(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "group.py").write_text(
        "import sys, time, pathlib, torch.distributed as dist\n"
        "init = lambda: dist.init_process_group('gloo', init_method=f'file://{sys.argv[2]}', rank=0, world_size=1)\n"
        "first = sys.argv[1] == 'first'\n"
        "if first: init(); pathlib.Path('made').touch()\n"
        "while not pathlib.Path('made').exists(): time.sleep(0.005)\n"
        "if not first:\n"
        "    try: init()\n"
        "    except RuntimeError as error: print(error)\n"
        "    pathlib.Path('tried').touch()\n"
        "while not pathlib.Path('tried').exists(): time.sleep(0.005)\n"
        "print(dist.is_initialized())\n"
    )
    one, two = tmp_path / "store1", tmp_path / "store2"
    done = gpushare("run", f"group.py first {one}", f"group.py second {two}")
    assert done.returncode == 0, done.stdout
    assert "group-2 | gpushare: group has torch.distributed's process group" in done.stdout
    assert "run group-2 when group has ended" in done.stdout


def test_what_a_library_keeps_is_named(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "leaves.py").write_text("import json, torch\nvars(json)['kept'] = torch.ones(3 << 20)\n")
    (tmp_path / "cycle.py").write_text(
        "import torch\nclass Node: pass\nnode = Node(); node.itself = node; node.kept = torch.ones(3 << 20)\n"
    )
    (tmp_path / "few.py").write_text("import json, torch\nvars(json)['few'] = torch.ones(1 << 10)\n")
    done = gpushare("run", "leaves.py", "cycle.py", "few.py", "--summary", "s.json")
    assert done.returncode == 0, done.stderr
    assert "leaves has ended, but a library still holds 12.0 MiB of its tensors" in done.stderr
    assert "cycle has ended, but" not in done.stderr
    assert "few has ended, but" not in done.stderr
    small = gpushare("run", "few.py", "--budget", "64MiB")
    assert "few has ended, but a library still holds 2.0 MiB of its tensors" in small.stderr
    left = [j["remaining_bytes"] for j in json.loads((tmp_path / "s.json").read_text())["jobs"]]
    assert left == [12 << 20, 0, 2 << 20]


def test_a_setting_of_the_process_is_named_and_goes_back(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "deep.py").write_text(
        MEET
        + "meet('b')\nsys.setrecursionlimit(5000)\nprint('deep has', sys.getrecursionlimit())\ntime.sleep(0.3)\n"
    )
    (tmp_path / "other.py").write_text(
        MEET + "before = sys.getrecursionlimit()\nmeet('a')\n"
        "while sys.getrecursionlimit() == before: time.sleep(0.005)\n"
        "while sys.getrecursionlimit() != before: time.sleep(0.005)\nprint('back')\n"
    )
    done = gpushare("run", "deep.py a", "other.py b")
    assert done.returncode == 0, done.stderr
    assert "deep has 5000" in done.stdout and "other | back" in done.stdout
    assert "deep sets the recursion limit to 5000" in done.stderr and "other (1000)" in done.stderr


def test_the_collector_rests_only_while_all_want_it_to(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "rests.py").write_text(
        MEET + "import gc\ngc.disable()\nassert not gc.isenabled()\nmeet('b')\ntime.sleep(0.5)\n"
    )
    (tmp_path / "collects.py").write_text(
        MEET + "import gc, weakref\nmeet('a')\nassert gc.isenabled()\n"
        "class Node: pass\nnode = Node(); node.me = node; seen = weakref.ref(node); del node\n"
        "for _ in range(100000): [[]]\n"
        "kept = [[] for _ in range(100000)]\nprint('collected', seen() is None)\n"
    )
    done = gpushare("run", "rests.py a", "collects.py b")
    assert done.returncode == 0, done.stderr
    assert "collects | collected True" in done.stdout


def test_what_torch_logs_goes_to_the_job_that_caused_it(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "logs_it.py").write_text(
        "import torch.fx, logging\nlogging.getLogger('torch.fx').warning('seen')\n"
    )
    done = gpushare("run", "logs_it.py", "--log-dir", "logs")
    assert done.returncode == 0, done.stderr
    assert "seen" in (tmp_path / "logs" / "logs_it.err").read_text()
    assert "seen" not in (tmp_path / "logs" / "host.log").read_text()


COMPILES = """
import pathlib, sys, time, torch
asks = len(sys.argv) > 1
if asks and sys.argv[1] == "first":
    torch.autograd.set_detect_anomaly(True)
    pathlib.Path("asked").touch()
model = torch.compile(torch.nn.Linear(8, 8), backend="aot_eager")
model(torch.ones(4, 8)).sum().backward()
if asks and sys.argv[1] == "outside":
    torch.compiler.disable(torch.autograd.set_detect_anomaly)(True)
    pathlib.Path("asked").touch()
exec("import sys; sys.setrecursionlimit(2000)", {"__name__": "torch._inductor.compile_fx"})
while pathlib.Path("one asks").exists() and not pathlib.Path("asked").exists():
    time.sleep(0.01)
"""


def test_what_torchs_compiler_sets_is_no_jobs_wish(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "compiles.py").write_text(COMPILES)
    done = gpushare("run", "compiles.py", "compiles.py")
    assert done.returncode == 0 and " sets " not in done.stderr, done.stderr
    (tmp_path / "one asks").touch()
    for when in ("first", "outside"):
        (tmp_path / "asked").unlink(missing_ok=True)
        done = gpushare("run", "compiles.py", f"compiles.py {when}")
        assert done.returncode == 0 and "compiles-2 sets anomaly detection to True" in done.stderr, (
            done.stderr
        )
        assert "recursion limit" not in done.stderr


def test_a_time_zone_that_jobs_differ_in_is_named(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "sets.py").write_text(
        MEET + "import os\nmeet('b')\nos.environ['TZ'] = 'Asia/Tokyo'\ntime.tzset()\nprint(time.tzname[0])\n"
        "pathlib.Path('set').touch()\n"
    )
    (tmp_path / "other.py").write_text(
        MEET + "before = time.timezone\nmeet('a')\nmeet('set')\n"
        "while time.timezone != before: time.sleep(0.005)\nprint('back')\n"
    )
    done = gpushare("run", "sets.py a", "other.py b")
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if "the time zone" in line]
    assert len(told) == 1 and "sets sets the time zone to JST +9 h" in told[0], done.stderr
    assert "sets | JST" in done.stdout and "other | back" in done.stdout
