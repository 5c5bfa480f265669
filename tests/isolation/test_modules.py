"""Modules of one name: a job's own file beside a package that others import."""

import os
import subprocess
import sys
import sysconfig
import threading
import types
from pathlib import Path
from typing import Any

import pytest
from conftest import Run

from gpushare.isolation import context, module_table, ownership

MEET = """
import pathlib, sys, time
def meet(here, other):
    pathlib.Path('../' + here).touch()
    while not pathlib.Path('../' + other).exists():
        time.sleep(0.005)
"""
LOOK_UP = """
import ctypes
find = ctypes.pythonapi.PyImport_ImportModule
find.restype = ctypes.py_object
def three(name):
    return {id(m): m for m in (__import__(name), sys.modules[name], find(name.encode()))}.values()
"""


def jobs(tmp_path: Path, one: str, other: str, own: str) -> list[str]:
    table = []
    for name, text in (("one", one), ("other", other)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / f"{name}.py").write_text(MEET + LOOK_UP + text)
        table.append(f"[[job]]\ncommand = '{folder}/{name}.py'\ncwd = '{folder}'\n")
    (tmp_path / "one" / own).write_text("MINE = True\n")
    (tmp_path / "jobs.toml").write_text("".join(table))
    return ["run", "-f", "jobs.toml"]


def test_an_own_module_named_as_one_that_is_loaded(gpushare: Run, tmp_path: Path) -> None:
    one = "import tqdm\nmeet('a', 'b')\n[m] = three('tqdm')\nprint(m.MINE, 'tqdm' in sys.modules)\n"
    other = "meet('b', 'a')\n[m] = three('tqdm')\nprint(hasattr(m, 'MINE'), m.tqdm.__name__)\n"
    done = gpushare(*jobs(tmp_path, one, other, "tqdm.py"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "one | True True" in done.stdout
    assert "other | False tqdm" in done.stdout


def test_an_own_module_named_as_one_that_another_job_imports_later(gpushare: Run, tmp_path: Path) -> None:
    one = (
        "meet('a', 'b')\n"
        "[m] = three('pytest')\nprint(m.MINE, [n for n in sys.modules if n.startswith('pytest')])\n"
    )
    other = (
        "import pytest\nmeet('b', 'a')\n[m] = three('pytest')\nprint(hasattr(m, 'MINE'), m.main.__name__)\n"
    )
    done = gpushare(*jobs(tmp_path, one, other, "pytest.py"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "one | True ['pytest']" in done.stdout
    assert "other | False main" in done.stdout


def test_a_path_that_is_appended_later(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "tqdm.py").write_text("MINE = 2\n")
    one = "meet('a', 'b')\nsys.path.insert(0, '../more')\n[m] = three('tqdm')\nprint(m.MINE)\n"
    other = "meet('b', 'a')\n[m] = three('tqdm')\nprint(hasattr(m, 'MINE'))\n"
    done = gpushare(*jobs(tmp_path, one, other, "unused.py"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "one | 2" in done.stdout
    assert "other | False" in done.stdout


COMPILED = """
#include <Python.h>
static int loads = 0;
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "once_only", 0, -1, 0};
PyMODINIT_FUNC PyInit_once_only(void) {
  if (loads++) {
    PyErr_SetString(PyExc_ImportError, "loaded twice in a process");
    return 0;
  }
  return PyModule_Create(&definition);
}
"""


@pytest.mark.parametrize("of", ["this interpreter", "an installer"])
def test_pythonpath_may_name_a_folder_of_installed_packages(
    of: str, gpushare: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is found there is loaded once for all jobs: compiled packages must be. What is only in another folder of
    PYTHONPATH is each job's own, however the folder is written."""
    packages = tmp_path / "target"
    if of == "this interpreter":
        packages = tmp_path / "user" / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
        monkeypatch.setenv("PYTHONUSERBASE", str(tmp_path / "user"))
    else:  # pip install --target
        (packages / "once_only-1.0.dist-info").mkdir(parents=True)
    packages.mkdir(parents=True, exist_ok=True)
    source = tmp_path / "once_only.c"
    source.write_text(COMPILED)
    include = sysconfig.get_paths()["include"]
    build = ["gcc", "-shared", "-fPIC", f"-I{include}", str(source), "-o", str(packages / "once_only.so")]
    subprocess.run(build, check=True, timeout=60)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "own_one.py").write_text("import sys\nOWNER = sys.argv[1]\n")
    (tmp_path / "once_only").mkdir()  # as a folder of data may be called, beside the environment
    script = "import once_only, own_one\nprint(own_one.OWNER, once_only.__file__.endswith('once_only.so'))\n"
    (tmp_path / "job.py").write_text(script)
    monkeypatch.setenv("PYTHONPATH", f"{packages}/{os.pathsep}mine")
    done = gpushare("run", "job.py one", "job.py two")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "one True" in done.stdout and "two True" in done.stdout


@pytest.mark.parametrize("pythonpath", ["", None])
def test_without_pythonpath_the_working_directory_is_as_it_was(
    pythonpath: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project that is installed from its own folder is on the path because of that."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    if pythonpath is not None:
        monkeypatch.setenv("PYTHONPATH", pythonpath)
    ask = (
        "import os, sys; sys.path.append(os.getcwd()); from gpushare.isolation import ownership; "
        "ownership.install(print); print(os.getcwd() in ownership._shared_path)"
    )
    done = subprocess.run(
        [sys.executable, "-c", ask], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "True\n", done.stderr


def test_gpushare_itself_is_no_jobs_own_where_pythonpath_names_its_tree(
    gpushare: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second copy, such as torch's compiler makes by importing what it finds named, would know of no shim."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "gpushare").symlink_to(Path(sysconfig.get_path("purelib"), "gpushare"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "tree"))
    (tmp_path / "asks.py").write_text(
        "import gpushare.native.library\nprint(gpushare.__file__, gpushare.native.library._shim is not None)\n"
    )
    done = gpushare("run", "asks.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{tmp_path}/tree/gpushare/__init__.py True" in done.stdout


FINDS = """
import importlib.abc, importlib.util, pathlib, sys, time
class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_loader(name, self) if name in names else None
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        module.value = sys.argv[1]
sys.meta_path.insert(0, Finder())
def hook(entry):
    asked.add(sys.argv[1])
    raise ImportError
asked = set()
sys.path_hooks.insert(0, hook)
sys.path.append("/nowhere/" + sys.argv[1])
names = {"made_up", "of_" + sys.argv[1]}
import made_up
from made_up import value
print(value, made_up.value, type(sys.meta_path[0]).__name__, len(sys.meta_path))
pathlib.Path(sys.argv[1]).touch()
while not pathlib.Path(sys.argv[2]).exists():
    time.sleep(0.01)
try:
    import of_one
    print("imported", of_one.value)
except ImportError as error:
    print(error)
if sys.argv[3:]:
    time.sleep(2)  # until the other one has ended
    import wave, sched
    sys.path_importer_cache.clear()
    print(importlib.import_module("made_up").value, importlib.util.find_spec("nothing_like_it"))
"""


def test_finders_are_each_jobs_own(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    """They find for the job that has put them there, and no longer when that has ended."""
    (tmp_path / "finds.py").write_text(FINDS)
    (tmp_path / "one").touch()
    (tmp_path / "other").touch()
    alone = [plain("finds.py", *words).stdout for words in (("one", "other"), ("other", "one", "last"))]
    for name in ("one", "other"):
        (tmp_path / name).unlink()
    done = gpushare("run", "finds.py one other", "finds.py other one last", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [(tmp_path / "logs" / f"finds{number}.out").read_text() for number in ("", "-2")] == alone


def test_threads_that_ask_at_once_whose_a_module_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the finders look for it nobody is told that it is not the job's."""
    job: Any = types.SimpleNamespace(values={})

    def look(_: object, top: str) -> bool:
        assert not ownership._is_of_script(job, top)  # a finder that imports what it is asked for
        if threading.current_thread() is threading.main_thread():
            thread = threading.Thread(target=lambda: told.append(ownership._is_of_script(job, top)))
            thread.start()
            thread.join()
        return True

    told: list[bool] = []
    monkeypatch.setattr(ownership, "_is_own", look)
    assert ownership._is_of_script(job, "parts.inner") and told == [True]


def test_a_copy_of_the_table_asks_only_of_what_may_be_a_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """inspect makes one for each signature that it reads."""
    asked: list[str] = []
    monkeypatch.setattr(module_table, "_own_modules", asked.append)
    monkeypatch.setattr(context, "current", lambda: types.SimpleNamespace(modules={}))
    mine = {name: types.ModuleType(name) for name in ("__main__", "builtins", "math", "os")}
    table = module_table.ModuleTable(dict(mine))
    assert table.copy() == mine and sorted(asked) == ["__main__", "builtins"]


STANDS_IN = """
import importlib, pathlib, sys, time, types
module = types.ModuleType("stands_in")
module.value = sys.argv[1]
sys.modules["stands_in"] = sys.modules["stands_in.inner"] = module
pathlib.Path(sys.argv[1]).touch()
while not pathlib.Path(sys.argv[2]).exists():
    time.sleep(0.01)
import stands_in.inner
print(stands_in.value, stands_in.inner is module, "stands_in" in sys.modules)
if sys.argv[3:]:
    time.sleep(1)  # the other one has ended
    print(importlib.import_module("stands_in").value, sys.modules.pop("stands_in").value, "stands_in" in sys.modules)
"""


def test_a_module_that_a_script_has_made_is_its_own(gpushare: Run, tmp_path: Path) -> None:
    """`sys.modules["flash_attn"] = mine`, say, where there is none."""
    (tmp_path / "job.py").write_text(STANDS_IN.replace("stands_in.inner is", "stands_in is"))
    (tmp_path / "looks.py").write_text(
        "import pathlib, sys, time\nwhile not pathlib.Path('one').exists(): time.sleep(0.01)\n"
        "print('stands_in' in sys.modules)\n"
        "try:\n    import stands_in\nexcept ModuleNotFoundError as error:\n    print(error)\n"
    )
    done = gpushare("run", "job.py one other", "job.py other one last", "looks.py", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    first, last, looks = (
        (tmp_path / "logs" / f"{name}.out").read_text() for name in ("job", "job-2", "looks")
    )
    assert first == "one True True\n"
    assert last == "other True True\nother other False\n"
    assert looks == "False\nNo module named 'stands_in'\n"


REPLACES = """
import importlib, pathlib, sys, time, types
from unittest import mock

def wait(point):
    pathlib.Path(f"{point}-{sys.argv[1]}").touch()
    while not pathlib.Path(f"{point}-{sys.argv[2]}").exists():
        time.sleep(0.01)

def show(*names):
    for name in names:
        try:
            module = importlib.import_module(name)
            print(name, getattr(module, "who", "as it is"), name in sys.modules)
        except ImportError as error:
            print(name, error)

PARTS = "torch.utils.tensorboard", "torch.utils.checkpoint", "torch.made_up"
NAMES = "csv", "logging.handlers", "xml.dom", "statistics", *PARTS
import csv, torch.utils.checkpoint, xml.dom
if sys.argv[3] == "replaces":
    mine = types.ModuleType("mine")
    mine.who = sys.argv[1]
    for name in ("csv", "logging.handlers", "torch.utils.tensorboard", "torch.made_up"):
        sys.modules[name] = mine
    sys.modules["statistics"] = None
    print(sys.modules.pop("xml.dom").__name__, "xml.dom" in sys.modules)
    del sys.modules["torch.utils.checkpoint"]
    import torch.utils.checkpoint
    print(sys.modules["torch.utils.checkpoint"].checkpoint.__name__)
if sys.argv[3] == "mocks":
    mine = mock.MagicMock(who="a mock")
    patch = mock.patch.dict(sys.modules, {"csv": mine, PARTS[0]: mine})
    patch.start()
wait("set")
show(*NAMES)
print(csv.reader(["a,b"]).__next__(), torch.utils.checkpoint.checkpoint.__name__, sorted(sys.modules).count("csv"))
wait("seen")
if sys.argv[3] == "mocks":
    patch.stop()
    show(*NAMES)
    print("csv" in dict.keys(sys.modules))  # found without Python code, as before
wait("end")
if sys.argv[3] == "last":
    time.sleep(2)  # until the others have ended
    show(*NAMES)
    print(torch.utils.checkpoint.checkpoint.__name__)
"""


@pytest.mark.parametrize("how", ["replaces", "mocks"])
def test_what_a_job_puts_in_a_shared_modules_place_is_its_own(
    how: str, gpushare: Run, plain: Run, tmp_path: Path
) -> None:
    """`sys.modules[name] = mine`, `del sys.modules[name]` and mocks of that, of modules that others have."""
    (tmp_path / "job.py").write_text(REPLACES)
    points = [tmp_path / f"{point}-{who}" for point in ("set", "seen", "end") for who in ("one", "other")]
    for point in points:
        point.touch()
    alone = [plain("job.py", *words).stdout for words in (("one", "other", how), ("other", "one", "last"))]
    for point in points:
        point.unlink()
    done = gpushare("run", f"job.py one other {how}", "job.py other one last", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [(tmp_path / "logs" / f"job{number}.out").read_text() for number in ("", "-2")] == alone


DELETES = """
import pathlib, sys
is_done = False
while not is_done:
    is_done = pathlib.Path("done").exists()
    for name in list(sys.modules):
        if name.partition(".")[0] == "torch":
            sys.modules.pop(name, None)
print("torch" in sys.modules, "torch._dynamo" in sys.modules)
"""


def test_a_job_deletes_no_module_that_another_one_imports(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "deletes.py").write_text(DELETES)
    (tmp_path / "imports.py").write_text(
        "import pathlib, time\ntime.sleep(0.3)\nimport torch._dynamo, torch.onnx\n"
        "print(torch._dynamo.is_compiling(), torch.onnx.__name__)\npathlib.Path('done').touch()\n"
    )
    done = gpushare("run", "deletes.py", "imports.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "deletes | False False" in done.stdout and "imports | False torch.onnx" in done.stdout
