"""The allocator's bridge to torch: it compiles against torch's headers, is kept, and serves a real torch.

What needs a torch that is built for CUDA runs with the interpreter that GPUSHARE_CUDA_PYTHON names, on any machine: its
driver is the fake one (`shim/tests/fake_cuda`), and a few functions of the CUDA runtime are stand-ins
(`cuda/runtime.cpp`). So nothing here says how a GPU behaves.

GPUSHARE_TORCH_HEADERS names further include folders of torch, separated by colons, to compile against.
"""

import ctypes
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

sys.path.append(str(Path(__file__).parent / "cuda"))
import stand_ins

from gpushare.framework import cuda_bridge, cuda_cache, cuda_toolchain
from gpushare.framework.cuda_toolchain import BridgeError, Toolchain
from gpushare.host import gpu
from gpushare.isolation import environment
from gpushare.native import library

ROOT = Path(__file__).parent.parent.parent
HERE = Path(__file__).parent / "cuda"
TORCH_HEADERS = [Path(torch.__file__).parent / "include"]
TORCH_HEADERS += map(Path, filter(None, os.environ.get("GPUSHARE_TORCH_HEADERS", "").split(":")))
# Instead of the header that says how libc10_cuda was built.
CPU_BUILD = ["-DC10_CUDA_NO_CMAKE_CONFIGURE_FILE", "-DC10_CUDA_BUILD_SHARED_LIBS"]
COMPILE_S = 300


def run(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=COMPILE_S,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


def cuda_headers() -> Path:
    try:
        return cuda_toolchain.cuda_include()
    except BridgeError as error:
        pytest.skip(f"nothing to compile against: {error}")


@pytest.mark.parametrize("headers", TORCH_HEADERS, ids=lambda path: path.parent.parent.name)
def test_it_compiles_and_links_against_the_headers(headers: Path, tmp_path: Path) -> None:
    libraries = headers.parent / "lib"
    tools = Toolchain("g++", "", headers, libraries, cuda_headers())
    command = cuda_bridge.command(tools)
    if (libraries / "libc10_cuda.so").exists():
        # Nothing of the bridge's own may stay open; what torch's libraries want of CUDA's need not be there.
        command += ["-ltorch_cpu", str(library.library_path()), "-Wl,-z,defs", "-Wl,--allow-shlib-undefined"]
    else:
        # A CPU build lacks libraries, and one header. What is missing stays open: a shared library may have that.
        command = [part for part in command if not part.startswith("-l")] + CPU_BUILD
    warnings = ["-Wall", "-Wextra", "-Werror"]
    run([*command, *warnings, "-o", str(tmp_path / "bridge.so")])
    symbols = run(["nm", "-DC", str(tmp_path / "bridge.so")]).stdout
    assert " T gpushare_bridge_install" in symbols
    declared = (ROOT / "shim/include/gpushare.h").read_text()
    used = [line.split()[-1] for line in symbols.splitlines() if " U gs_" in line]
    assert len(used) > 10
    for name in used:
        assert f" {name}(" in declared or f"*{name}(" in declared or f"* {name}(" in declared, name
    mangled = run(["nm", "-D", str(tmp_path / "bridge.so")]).stdout
    assert "22CUDAPluggableAllocator" in mangled
    assert "changeCurrentAllocator" in mangled


def test_the_key_tells_everything_that_matters_apart(tmp_path: Path) -> None:
    first, second = tmp_path / "a.cpp", tmp_path / "b.cpp"
    first.write_text("one")
    second.write_text("two")
    build = {"torch": "2.13.0", "compiler": "g++ 12"}
    key = cuda_cache.key([first, second], build)
    assert key == cuda_cache.key([second, first], dict(reversed(build.items())))
    others = [
        cuda_cache.key([first], build),
        cuda_cache.key([first, second], {**build, "torch": "2.11.0"}),
        cuda_cache.key([first, second], {**build, "compiler": "g++ 13"}),
        cuda_cache.key([first, second], {"torch": "2.13.0"}),
        cuda_cache.key([first, second], {"torch": "2.13.0compiler", "": "g++ 12"}),
    ]
    second.write_text("twofold")
    others.append(cuda_cache.key([first, second], build))
    second.write_text("two")
    second.rename(tmp_path / "c.cpp")
    others.append(cuda_cache.key([first, tmp_path / "c.cpp"], build))
    assert len({key, *others}) == 8


def test_headers_that_come_later_build_another_bridge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_toolchain, "_LOOKED_AT_ALWAYS", ())
    tools = Toolchain("g++", "12", tmp_path, tmp_path, tmp_path / "cuda", (tmp_path / "libraries",))
    names = ("cublas_v2.h", "cublasLt.h", "cusparse.h", "cusolverDn.h", "nv/target")
    assert tools.missing_headers == names
    before = cuda_bridge.path(tools)
    for name in names:
        header = tmp_path / ("cuda" if name == "nv/target" else "libraries") / name
        header.parent.mkdir(parents=True, exist_ok=True)
        header.write_text("")
    assert tools.missing_headers == () and cuda_bridge.path(tools) != before
    source = (library.source_path() / "bridge" / "workspaces.cpp").read_text()
    assert all(f"__has_include(<{name}>)" in source for name in names)


def test_every_source_is_part_of_the_key() -> None:
    names = {path.name for path in cuda_bridge.sources()}
    assert names >= {"allocator.h", "allocator.cpp", "pools.cpp", "gpushare.h"}
    assert {path.name for path in (library.source_path() / "bridge").iterdir()} < names


def test_sources_that_lie_elsewhere_are_the_same_bridge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = Toolchain("g++", "12", tmp_path, tmp_path, tmp_path / "cuda")
    elsewhere = tmp_path / "elsewhere"
    for part in ("bridge", "include"):
        shutil.copytree(library.source_path() / part, elsewhere / part)
    before = cuda_bridge.path(tools)
    monkeypatch.setattr(library, "source_path", lambda: elsewhere)
    assert str(elsewhere / "bridge") in " ".join(cuda_bridge.command(tools))
    assert cuda_bridge.path(tools) == before
    with (elsewhere / "bridge" / "pools.cpp").open("a") as source:
        source.write("// another\n")
    assert cuda_bridge.path(tools) != before


SLOW_COMPILER = """#!/bin/sh
while [ "$1" != "-o" ]; do shift; done
printf half > "$2"; sleep 0.5; printf whole > "$2"
"""


@pytest.fixture
def compiler(tmp_path: Path) -> Callable[[str], str]:
    def make(text: str) -> str:
        path = tmp_path / "compiler"
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    return make


def test_two_processes_at_once_leave_one_whole_file(tmp_path: Path, compiler: Callable[[str], str]) -> None:
    at = tmp_path / "cache" / "bridge.so"
    program = "import sys; from pathlib import Path; from gpushare.framework import cuda_cache; "
    program += "cuda_cache.compile_to(Path(sys.argv[1]), [sys.argv[2]])"
    command = [sys.executable, "-c", program, str(at), compiler(SLOW_COMPILER)]
    running = [subprocess.Popen(command, cwd=ROOT) for _ in range(2)]
    while any(process.poll() is None for process in running):
        assert not at.exists() or at.read_text() == "whole"
    assert [process.returncode for process in running] == [0, 0]
    assert at.read_text() == "whole"
    assert list(at.parent.iterdir()) == [at]


def test_a_failing_compiler_is_told_with_its_words(tmp_path: Path, compiler: Callable[[str], str]) -> None:
    failing = compiler("#!/bin/sh\necho in file: >&2\necho 'x.h:3: error: no such type' >&2\nexit 7\n")
    at = tmp_path / "cache" / "bridge.so"
    with pytest.raises(BridgeError, match=r"exit code 7 of .*compiler\): x.h:3: error: no such type"):
        cuda_cache.compile_to(at, [failing])
    assert list(at.parent.iterdir()) == []


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BridgeError, match="set XDG_CACHE_HOME"):
        cuda_cache.compile_to(tmp_path / "file" / "bridge.so", ["true"])


def test_a_compiler_that_finds_an_archive_only_is_told_the_library(
    tmp_path: Path, compiler: Callable[[str], str]
) -> None:
    """As one that was moved away from its system."""
    finds = {
        name: cuda_toolchain._cxx_library(compiler(f"#!/bin/sh\necho {name}\n"))
        for name in ("/a/b.so", "b.so")
    }
    assert finds == {"/a/b.so": (), "b.so": ("-l:libstdc++.so.6",)}
    tools = Toolchain("g++", "12", tmp_path, tmp_path, tmp_path, (), finds["b.so"])
    assert cuda_bridge.command(tools)[-1] == "-l:libstdc++.so.6"
    source = tmp_path / "a.cpp"
    source.write_text("#include <string>\nstd::string a() { return std::to_string(1); }\n")
    run(
        [
            "g++",
            "-shared",
            "-fPIC",
            str(source),
            "-o",
            str(tmp_path / "a.so"),
            *finds["b.so"],
            "-nodefaultlibs",
        ]
    )
    assert "[libstdc++.so.6]" in run(["readelf", "-d", str(tmp_path / "a.so")]).stdout


@pytest.fixture
def cuda_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks as a CUDA build of torch does to whoever searches it."""
    site = tmp_path / "site-packages"
    for header in cuda_toolchain._OF_CUDA_BUILDS:
        (site / "torch" / "include" / header).parent.mkdir(parents=True, exist_ok=True)
        (site / "torch" / "include" / header).touch()
    monkeypatch.setattr(torch, "__file__", str(site / "torch" / "__init__.py"))
    monkeypatch.setattr(torch, "version", SimpleNamespace(cuda="99.9"))
    monkeypatch.setattr(cuda_toolchain, "_TOOLKITS", tmp_path)
    for variable in ("CXX", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    return site


def test_a_missing_compiler_is_named(
    cuda_build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        BridgeError, match=r"none of g\+\+, c\+\+, clang\+\+ is there; install g\+\+ 11 or later"
    ):
        cuda_toolchain.find()
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(BridgeError, match="CXX=no-such-compiler is not there"):
        cuda_toolchain.find()


def test_missing_headers_are_named(cuda_build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        BridgeError, match=r"CUDA's headers .*crt/host_defines.h.* install a CUDA 99.9 toolkit"
    ):
        cuda_toolchain.find()
    wheel = cuda_build / "nvidia" / "cu99" / "include"
    (wheel / "crt").mkdir(parents=True)
    (wheel / "cuda_runtime_api.h").touch()
    with pytest.raises(BridgeError, match="nvidia-cuda-crt"):  # the runtime's wheel alone is not enough
        cuda_toolchain.find()
    (wheel / "crt" / "host_defines.h").touch()
    assert cuda_toolchain.find().cuda_include == wheel
    (wheel / "crt" / "host_defines.h").unlink()  # as CUDA 12's wheels have them
    compilers = cuda_build / "nvidia" / "cuda_nvcc" / "include"
    (compilers / "crt").mkdir(parents=True)
    (compilers / "crt" / "host_defines.h").touch()
    found = cuda_toolchain.find()
    assert found.cuda_include == wheel and compilers in found.cuda_libraries_include
    (cuda_build / "torch" / "include" / cuda_toolchain._OF_CUDA_BUILDS[0]).unlink()
    with pytest.raises(BridgeError, match="it is a build without CUDA"):
        cuda_toolchain.find()


def test_a_damaged_file_does_not_stay(tmp_path: Path) -> None:
    at = tmp_path / "bridge.so"
    at.write_text("not a library")
    with pytest.raises(BridgeError, match="can't be loaded"):
        cuda_bridge.load(at)
    assert not at.exists()


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """A CUDA build of torch, with what its programs need, compiled."""
    python = os.environ.get("GPUSHARE_CUDA_PYTHON")
    if not python:
        pytest.skip("GPUSHARE_CUDA_PYTHON names no interpreter that has a torch built for CUDA")
    folder = tmp_path_factory.mktemp("cuda")
    made = stand_ins.build(python, folder)
    tools = made.tools
    link = [f"-L{tools['torch_libraries']}", f"-Wl,-rpath,{tools['torch_libraries']}"]
    header = Path(tools["torch_include"], "c10/cuda/CUDACachingAllocator.h").read_text()
    tells = ["-DTELLS_CAPTURES"] if "markCaptureBegin" in header else []
    libraries = ["-lc10", "-lc10_cuda", "-ltorch_cpu", "-ltorch_cuda"]
    compiling = [tools["compiler"], *stand_ins.FLAGS, "-O1", *made.includes, *tells]

    def compiled(name: str) -> Path:
        at = folder / f"{name}.so"
        run([*compiling, str(HERE / name), *link, *libraries, "-o", str(at)])
        return at

    return SimpleNamespace(
        python=python,
        driver=made.driver,
        calls=compiled("calls.cpp"),
        runtime=made.runtime,
        folder=folder,
        compile=compiled,
    )


def preloaded(real: SimpleNamespace) -> str:
    """The shim first: it stands before functions of the runtime, as it does where it is loaded before torch."""
    return f"{library.library_path()} {real.runtime}"


def started(real: SimpleNamespace, program: str, *arguments: object, **environment: str) -> str:
    command = [real.python, str(HERE / program), str(library.library_path()), *map(str, arguments)]
    fixed = {"LD_PRELOAD": preloaded(real), "XDG_CACHE_HOME": str(real.folder)}
    return run(command, **fixed, **environment).stdout


def test_the_allocator_of_a_real_torch(real: SimpleNamespace) -> None:
    assert started(real, "program.py", real.driver, real.calls).endswith("ok\n")


def test_tensors_of_a_real_torch(real: SimpleNamespace) -> None:
    assert started(real, "tensors.py").endswith("ok\n")
    (kept,) = (real.folder / "gpushare" / "bridge").iterdir()
    assert kept.suffix == ".so"


def test_what_jobs_have_of_their_own(real: SimpleNamespace) -> None:
    assert started(real, "jobs.py", real.calls).endswith("ok\n")


def test_each_job_has_its_own_state_of_recurrent_dropout(real: SimpleNamespace) -> None:
    stands_before = real.compile("recurrent.cpp")
    command = [real.python, str(HERE / "recurrent.py"), str(library.library_path())]
    fixed = {"LD_PRELOAD": preloaded(real), "XDG_CACHE_HOME": str(real.folder)}
    done = run(command, **fixed, GPUSHARE_TEST_STANDS_BEFORE=str(stands_before))
    assert done.stdout.endswith("ok\n") and "Overriding" not in done.stderr, done.stderr


def test_graph_trees_of_inductor(real: SimpleNamespace) -> None:
    assert started(real, "trees.py", real.calls).endswith("ok\n")


def test_tensors_without_a_compiler(real: SimpleNamespace) -> None:
    assert started(real, "tensors.py", "plain", CXX="no-such-compiler").endswith("ok\n")


@pytest.mark.gpu
@pytest.mark.parametrize("arguments", [(), ("plain",)], ids=["bridge", "plain"])
def test_tensors_on_a_gpu(arguments: tuple[str, ...]) -> None:
    python = os.environ.get("GPUSHARE_CUDA_PYTHON", sys.executable)
    environment = {"CUBLAS_WORKSPACE_CONFIG": ":16:8"}
    if arguments:
        environment["CXX"] = "no-such-compiler"
    command = [python, str(HERE / "tensors.py"), str(library.library_path()), *arguments]
    assert run(command, **environment).stdout.endswith("ok\n")


def start_message(jobs: list[dict[str, object]]) -> dict[str, object]:
    sizes = {"budget_bytes": 256 << 20, "page_bytes": 2 << 20, "region_bytes": 32 << 20}
    none = {
        "telemetry_fd": -1,
        "log_fd": -1,
        "decisions_fd": -1,
        "order": "fifo",
        "split_bytes": None,
        "parent_pid": 0,
        "debug_memory": False,
        "shared_packages": [],
        "open_files": None,
    }
    return {"op": "start", "mode": "run", "policy": "zico", "device": "cuda:0", **sizes, **none, "jobs": jobs}


def run_host(real: SimpleNamespace, megabytes: list[int]) -> tuple[list[dict[str, object]], list[str]]:
    """A host on the fake GPU, with a job for each; its messages, and the jobs' outputs."""
    ours, theirs = socket.socketpair()
    pipes = [os.pipe() for _ in megabytes]
    jobs = [
        {
            "name": f"job{n}",
            "kind": "script",
            "target": str(HERE / "job.py"),
            "args": [str(size)],
            "cwd": str(ROOT),
        }
        | {
            "env": {},
            "priority": 0,
            "stdout_fd": writing,
            "stderr_fd": os.dup(writing),
            "stdin": False,
            "profile": None,
            "solo_s": None,
            "profiled_log_fd": -1,
        }
        for n, (size, (_, writing)) in enumerate(zip(megabytes, pipes, strict=True))
    ]
    descriptors = [theirs.fileno(), *(job["stdout_fd"] for job in jobs), *(job["stderr_fd"] for job in jobs)]
    load = "from pathlib import Path; from gpushare.native import library; "
    load += f"library.library_path = lambda: Path({str(library.library_path())!r}); "
    program = load + "import sys; from gpushare.host.entry import main; sys.exit(main(int(sys.argv[1])))"
    fixed = {"LD_PRELOAD": preloaded(real), "XDG_CACHE_HOME": str(real.folder), "PYTHONPATH": str(ROOT)}
    host = subprocess.Popen(
        [real.python, "-c", program, str(theirs.fileno())],
        env={**os.environ, **fixed},
        pass_fds=descriptors,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    for descriptor in {theirs.detach(), *descriptors[1:]}:
        os.close(descriptor)
    try:
        ours.sendall((json.dumps(start_message(jobs)) + "\n").encode())
        ours.settimeout(120)
        with ours.makefile() as lines:
            messages = [json.loads(line) for line in lines]
        outputs = []
        for reading, _ in pipes:
            with open(reading) as output:
                outputs.append(output.read())
        assert host.wait(30) == 0, messages
        return messages, outputs
    finally:
        host.kill()
        host.wait()


def test_a_host_on_a_gpu_runs_jobs(real: SimpleNamespace) -> None:
    messages, outputs = run_host(real, [20, 30])
    told = f"{messages}\n{outputs}"
    ends = {m["job"]: (m["status"], m["exit_code"]) for m in messages if m["event"] == "job_ended"}
    assert ends == {0: ("ok", 0), 1: ("ok", 0)}, told
    assert messages[-1]["event"] == "done", told
    for megabytes, output in zip((20, 30), outputs, strict=True):
        assert output.splitlines() == [
            f"{megabytes} {megabytes} 1",
            "True True 10.0",
            "CUDA out of memory.",
        ], told


def installed(folder: Path) -> Path:
    """A folder for PYTHONPATH with gpushare as an installation has it."""
    package = folder / "site" / "gpushare"
    if package.exists():
        return package.parent
    shutil.copytree(ROOT / "gpushare", package, ignore=shutil.ignore_patterns("_shim", "__pycache__"))
    (package / "_shim" / "source").mkdir(parents=True)
    (package / "_shim" / "libgpushare.so").symlink_to(library.library_path())
    for name in ("bridge", "include"):
        (package / "_shim" / "source" / name).symlink_to(ROOT / "shim" / name)
    return package.parent


def console(real: SimpleNamespace, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a python whose torch is built for CUDA, over the stand-in."""
    fixed = {"LD_PRELOAD": preloaded(real), "XDG_CACHE_HOME": str(real.folder)}
    fixed |= {"XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": str(installed(folder))}
    return subprocess.run(
        [real.python, "-m", "gpushare", *arguments],
        env={**os.environ, **fixed},
        capture_output=True,
        text=True,
        timeout=COMPILE_S,
        cwd=folder,
    )


def test_the_command_runs_jobs_on_a_gpu(real: SimpleNamespace, tmp_path: Path) -> None:
    jobs = [f"{HERE / 'job.py'} {size}" for size in (20, 30)]
    options = ["--device", "cuda", "--budget", "256MiB", "--summary", "summary.json", "--trace", "log"]
    done = console(real, tmp_path, "run", *jobs, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    for name, size in (("job", 20), ("job-2", 30)):
        lines = [line for line in done.stdout.splitlines() if line.startswith(f"{name} |")]
        assert lines[:2] == [f"{name} | {size} {size} 1", f"{name} | True True 10.0"], done.stdout
    where = "cuda:0 (Fake CUDA device)"
    assert f"policy auto, device {where}" in done.stderr
    assert "who waits for them" not in done.stderr
    assert json.loads((tmp_path / "summary.json").read_text())["device"] == where
    assert where in done.stdout.splitlines()[-1]
    header, _, records = (tmp_path / "log").read_bytes().partition(b"\n")
    assert json.loads(header)["device"] == "cuda:0" and records


def test_a_profile_is_of_its_gpu(real: SimpleNamespace, tmp_path: Path) -> None:
    job, options = str(HERE / "trains.py"), ["--device", "cuda", "--budget", "256MiB"]
    done = console(real, tmp_path, "profile", "--json", *options, job)
    assert done.returncode == 0, done.stderr
    profile = json.loads(done.stdout)
    assert profile["device"] == "cuda Fake CUDA device"
    assert 70 << 20 <= profile["peak_held_bytes"] <= 90 << 20
    again = console(real, tmp_path, "run", job, job, *options, "--summary", "summary.json")
    assert again.returncode == 0, again.stdout + again.stderr
    assert again.stderr.count("starts with its saved profile") == 2, again.stderr
    lines = {line.split(" | ")[1] for line in again.stdout.splitlines() if " | " in line}
    assert len(lines) == 1, "the same as each other"
    summary = json.loads((tmp_path / "summary.json").read_text())
    # The last iteration is closed by the next allocation, which never comes.
    assert [job["iterations"] for job in summary["jobs"]] == [29, 29]
    assert summary["pool_peak_bytes"] <= summary["budget_bytes"]


def test_a_lost_gpu_is_told_and_its_jobs_start_again_alone(real: SimpleNamespace, tmp_path: Path) -> None:
    jobs = [f"{HERE / 'breaks.py'} first second", f"{HERE / 'breaks.py'} second first"]
    options = ["--device", "cuda", "--budget", "256MiB", "--restart", "--summary", "summary.json"]
    done = console(real, tmp_path, "run", *jobs, *options)
    told = done.stdout + done.stderr
    assert "the GPU is lost for all jobs of this host (AcceleratorError: CUDA error" in done.stderr, told
    assert "may as well have caused it" in done.stderr, told
    assert done.returncode == 0, told
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert [job["status"] for job in summary["jobs"]] == ["lost", "lost"]
    assert [[job["status"] for job in again["jobs"]] for again in summary["restarts"]] == [["ok"], ["ok"]]


@pytest.mark.parametrize(("name", "status"), [("guarded", "lost"), ("guarded-well", "ok")])
def test_a_job_that_catches_the_loss_of_the_gpu_is_not_passed_over(
    name: str, status: str, real: SimpleNamespace, tmp_path: Path
) -> None:
    """It ends first, with an exit code of its own. Else the other one would be to blame, and stay out."""
    jobs = [f"{HERE / 'breaks.py'} {name} other", f"{HERE / 'breaks.py'} other {name}"]
    options = ["--device", "cuda", "--budget", "256MiB", "--restart", "--summary", "summary.json"]
    done = console(real, tmp_path, "run", *jobs, *options)
    told = done.stdout + done.stderr
    assert "breaks met it first, but breaks-2 may as well have caused it" in done.stderr, told
    assert done.returncode == 0, told
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert [job["status"] for job in summary["jobs"]] == [status, "lost"]
    again = [job["status"] for run in summary["restarts"] for job in run["jobs"]]
    assert again == ["ok"] * [status, "lost"].count("lost")


WAITS_UNASKED = """
import sys, time, torch
torch.empty(1 << 20, device="cuda")
if sys.argv[1] == "error":
    torch.cuda.set_sync_debug_mode("error")
    try:
        torch.cuda.current_stream().synchronize()
    finally:
        torch.empty(1 << 20, device="cuda")
time.sleep(1)
"""


def test_a_wait_that_a_script_has_forbidden_is_its_own_failure(real: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text(WAITS_UNASKED)
    jobs = [f"{tmp_path / 'waits.py'} quiet", f"{tmp_path / 'waits.py'} error"]
    done = console(
        real, tmp_path, "run", *jobs, "--device", "cuda", "--budget", "256MiB", "--summary", "s.json"
    )
    told = done.stdout + done.stderr
    assert done.returncode == 1 and "waits-2: RuntimeError: called a synchronizing CUDA operation" in told, (
        told
    )
    assert "sets CUDA's sync debug mode to 2" in done.stderr, told
    assert "the GPU is lost" not in told and "could not leave" not in told, told
    assert [job["status"] for job in json.loads((tmp_path / "s.json").read_text())["jobs"]] == [
        "ok",
        "failed",
    ]


@pytest.mark.parametrize(
    "code", [700, 710, 719, 214, 709, 999], ids=["address", "assert", "launch", "ecc", "reset", "unknown"]
)
def test_a_gpu_that_is_lost_to_a_job_alone_is_its_fault(
    code: int, real: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BREAKS_WITH", str(code))
    options = ["--device", "cuda", "--budget", "256MiB"]
    done = console(real, tmp_path, "run", f"{HERE / 'breaks.py'} only", *options)
    assert done.returncode == 4, done.stdout + done.stderr
    assert "breaks caused it: no other job ran" in done.stderr


ONLY_ONE = """
import torch
print(torch.cuda.device_count(), torch.cuda.current_device(), torch.cuda.get_device_name())
torch.empty(1, device="cuda:0")
try:
    torch.empty(1, device="cuda:1")
except RuntimeError as error:
    print("invalid device" in str(error))
"""


def test_jobs_see_the_one_gpu_of_several_that_they_were_given(
    real: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CUDA_DEVICES", "3")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    (tmp_path / "only.py").write_text(ONLY_ONE)
    options = ["--budget", "256MiB", "--summary", "summary.json"]
    done = console(real, tmp_path, "run", "only.py", "only.py", "--device", "cuda:1", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("only", "only-2"):
        lines = [line for line in done.stdout.splitlines() if line.startswith(f"{name} |")]
        assert lines == [f"{name} | 1 0 Fake CUDA device 1", f"{name} | True"], done.stdout
    told = json.loads((tmp_path / "summary.json").read_text())
    assert told["device"] == "cuda:1 (Fake CUDA device 1)"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,0")
    done = console(real, tmp_path, "run", "only.py", "--device", "cuda:0", *options)
    assert "only | 1 0 Fake CUDA device 2" in done.stdout, done.stdout + done.stderr
    done = console(real, tmp_path, "run", "only.py", "--device", "cuda:2", *options)
    assert done.returncode == 2 and "there is no such GPU, cuda:0 to cuda:1" in done.stderr, done.stderr


def test_a_gpu_that_is_not_there_starts_nothing(real: SimpleNamespace, tmp_path: Path) -> None:
    done = console(real, tmp_path, "profile", "--device", "cuda:1", str(HERE / "job.py"), "20")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == "gpushare: --device cuda:1: there is no such GPU, only cuda:0"


@pytest.mark.parametrize(
    ("device", "seen", "then"),
    [
        ("cpu", None, None),
        ("cuda", None, "0"),
        ("cuda:2", None, "2"),
        ("cuda:1", "3, 5", "5"),
        ("cuda:0", "GPU-1234", "GPU-1234"),
    ],
)
def test_a_host_sees_the_gpu_it_was_given(
    device: str, seen: str | None, then: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(gpu.VISIBLE, raising=False)
    monkeypatch.setenv(gpu.QUEUES, "7")  # the person's own stays
    if seen:
        monkeypatch.setenv(gpu.VISIBLE, seen)
    assert gpu.choose(device) == (None if device == "cpu" else 0)
    assert os.environ.get(gpu.VISIBLE) == (seen if device == "cpu" else then)
    getenv = ctypes.CDLL(None).getenv  # as the driver asks
    getenv.restype = ctypes.c_char_p
    assert getenv(gpu.QUEUES.encode()) == b"7"
    monkeypatch.delenv(gpu.QUEUES)
    gpu.choose("cpu")
    assert getenv(gpu.QUEUES.encode()) is None
    monkeypatch.delenv(gpu.VISIBLE, raising=False)
    gpu.choose("cuda")
    assert getenv(gpu.QUEUES.encode()) == gpu.MOST_QUEUES.encode() and gpu.QUEUES not in os.environ
    os.unsetenv(gpu.QUEUES)


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ("backend:native", None),
        (" backend:cudaMallocAsync", None),
        ("max_split_size_mb:64,backend:native", "max_split_size_mb:64"),
        (
            "roundup_power2_divisions:[256:1,512:2],backend:x,a:1",
            "roundup_power2_divisions:[256:1,512:2],a:1",
        ),
        ("expandable_segments:True", "expandable_segments:True"),
    ],
)
def test_torch_is_not_asked_for_another_allocator_than_the_pool(
    asked: str, left: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(gpu.VISIBLE, "0")
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_char_p
    for name in environment.ALLOCATOR_SETTINGS:
        monkeypatch.setenv(name, asked)
    gpu.choose("cpu")
    assert getenv(b"PYTORCH_ALLOC_CONF") == asked.encode()
    gpu.choose("cuda")
    for name in environment.ALLOCATOR_SETTINGS:
        assert getenv(name.encode()) == (left.encode() if left else None)
        assert os.environ[name] == asked
    os.unsetenv(gpu.QUEUES)


PINS = """
import os, sys, torch
if len(sys.argv) > 1:
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = sys.argv[1]
    assert os.environ["PYTORCH_CUDA_ALLOC_CONF"] == sys.argv[1]
made = torch.empty(1 << 20, device="cuda")
print(torch.empty(100, pin_memory=True).numel(), torch.cuda.get_allocator_backend())
"""


@pytest.mark.parametrize("compiler", ["", "no-such-compiler"], ids=["bridge", "plain"])
def test_settings_of_torchs_own_allocator_break_no_pinned_memory(
    compiler: str, real: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the environment, and those that one job makes before any has pinned some."""
    if compiler:
        monkeypatch.setenv("CXX", compiler)
    (tmp_path / "pins.py").write_text(PINS)
    options = ["--device", "cuda", "--budget", "256MiB"]
    name = "pluggable" if compiler else "native"
    for outside, jobs in (
        ("", ["pins.py backend:cudaMallocAsync", "pins.py"]),
        ("backend:cudaMallocAsync", ["pins.py", "pins.py backend:native"]),
        ("expandable_segments:True", ["pins.py", "pins.py"]),
    ):
        monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", outside) if outside else None
        done = console(real, tmp_path, "run", *jobs, *options)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count(f"| 100 {name}") == 2, done.stdout
        told = "which is for torch's own allocator: in the pool it changes nothing" in done.stderr
        assert told == any(" " in job for job in jobs), done.stderr


def test_a_gpu_that_is_hidden_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(gpu.VISIBLE, "3")
    with pytest.raises(ValueError, match=r"--device cuda:1: CUDA_VISIBLE_DEVICES='3' leaves 1 GPUs"):
        gpu.choose("cuda:1")
