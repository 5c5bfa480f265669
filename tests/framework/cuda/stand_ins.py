"""A GPU that computes nothing: the fake driver, and stand-ins for the few functions of the CUDA runtime that torch
needs to make and free tensors. Built for an interpreter whose torch is built for CUDA.
"""

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent.parent.parent
FLAGS = ("-std=c++20", "-g", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror")
COMPILE_S = 300
TOOLS = "import json, dataclasses; from gpushare.framework import cuda_toolchain as t; "
TOOLS += "print(json.dumps(dataclasses.asdict(t.find()), default=str))"


@dataclass(frozen=True)
class StandIns:
    """`runtime` is what to preload; `driver` lies beside it. `includes` are options to compile against torch, and
    `tools` what `framework.cuda_toolchain` has found."""

    driver: Path
    runtime: Path
    includes: tuple[str, ...]
    tools: dict[str, Any]


def run(command: Sequence[str | Path]) -> str:
    """What it prints.

    :raises SubprocessError: it failed, or took too long; its words went to stderr.
    """
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True, timeout=COMPILE_S)
    return done.stdout


def build(python: str, folder: Path, optimise: str = "-O1") -> StandIns:
    """Into the folder, for this interpreter.

    :raises SubprocessError: a compiler, or CUDA's headers, are missing, or the sources do not compile.
    """
    tools = json.loads(run([python, "-c", TOOLS]))
    # The shim's cuda.h is not the driver's.
    includes = [f"-I{ROOT / 'shim/include'}", "-iquote", f"{ROOT / 'shim/src/devices'}"]
    for name in ("torch_include", "cuda_include"):
        includes += ["-isystem", tools[name]]
    driver, runtime = folder / "libfake_cuda.so", folder / "libcuda.so.1"
    compile_it = [tools["compiler"], *FLAGS, optimise]
    fake = sorted((ROOT / "shim/tests/fake_cuda").glob("*.cpp"))
    run([*compile_it, "-Wl,-soname,libfake_cuda.so", *fake, "-o", driver])
    soname = ["-Wl,-soname,libcuda.so.1", f"-Wl,-rpath,{folder}"]
    run([*compile_it, *includes, HERE / "runtime.cpp", driver, *soname, "-o", runtime])
    return StandIns(driver, runtime, tuple(includes), tools)
