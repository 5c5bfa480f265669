"""Finds what the bridge is compiled with: a C++ compiler, torch's headers, CUDA's headers. No nvcc is needed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

# The second one comes in a package of its own, which torch does not ask for: its wheels alone may lack it.
_OF_RUNTIME, _OF_COMPILER = _CUDA_HEADERS = ("cuda_runtime_api.h", "crt/host_defines.h")
_OF_CUDA_BUILDS = ("c10/cuda/impl/cuda_cmake_macros.h", "torch/csrc/cuda/CUDAPluggableAllocator.h")
# What bridge/workspaces.cpp needs beside these; `nv/target` is CCCL's.
_OF_CUDA_LIBRARIES = ("cublas_v2.h", "cublasLt.h", "cusparse.h", "cusolverDn.h", "nv/target")
_LOOKED_AT_ALWAYS = (Path("/usr/include"), Path("/usr/local/include"))
_COMPILERS = ("g++", "c++", "clang++")
_TOOLKITS = Path("/usr/local")


class BridgeError(Exception):
    """The bridge can't be built or loaded; the text says what is missing and what to do."""


@dataclass(frozen=True)
class Toolchain:
    """`version` is what the compiler says of itself, in one line."""

    compiler: str
    version: str
    torch_include: Path
    torch_libraries: Path
    cuda_include: Path
    cuda_libraries_include: tuple[Path, ...] = ()  # looked at last; of cuBLAS and others, if they are there
    cxx_library: tuple[str, ...] = ()  # arguments, where the compiler would take another one than torch's

    @property
    def missing_headers(self) -> tuple[str, ...]:
        """Of CUDA's libraries, without which the bridge does not know cuBLAS's workspaces."""
        folders = (self.torch_include, self.cuda_include, *self.cuda_libraries_include, *_LOOKED_AT_ALWAYS)
        return tuple(
            header
            for header in _OF_CUDA_LIBRARIES
            if not any((folder / header).is_file() for folder in folders)
        )


def find() -> Toolchain:
    """What is there for the torch that is installed.

    :raises BridgeError: something is missing.
    """
    folder = Path(torch.__file__).parent
    for header in _OF_CUDA_BUILDS:
        if not (folder / "include" / header).is_file():
            raise BridgeError(
                f"torch {torch.__version__} has no {header}: it is a build without CUDA; install one with CUDA"
            )
    compiler = _compiler()
    cuda = cuda_include()
    libraries = _wheels(folder.parent)
    # CCCL's headers (nv/target, for cuda_fp16.h) have a folder of their own since CUDA 13, which nvcc knows.
    libraries += [at for at in (one / "cccl" for one in (cuda, *libraries)) if at.is_dir()]
    return Toolchain(
        compiler,
        _said(compiler, "--version"),
        folder / "include",
        folder / "lib",
        cuda,
        tuple(libraries),
        _cxx_library(compiler),
    )


def _compiler() -> str:
    """$CXX, or the first that the path has."""
    named = os.environ.get("CXX")
    for name in (named,) if named else _COMPILERS:
        if found := shutil.which(name):
            return found
    what = f"CXX={named} is not there" if named else f"none of {', '.join(_COMPILERS)} is there"
    raise BridgeError(f"there is no C++ compiler: {what}; install g++ 11 or later, or set CXX")


def _said(compiler: str, question: str) -> str:
    """The first line of the answer."""
    try:
        said = subprocess.run([compiler, question], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise BridgeError(f"the C++ compiler {compiler} does not run: {error}; set CXX to another") from error
    return said.stdout.partition("\n")[0]


def _cxx_library(compiler: str) -> tuple[str, ...]:
    """Torch's exceptions are of the C++ library that torch has loaded. A compiler that was moved away from its
    system does not find that one, and would put the archive's code into the bridge.
    """
    found = os.path.isabs(_said(compiler, "-print-file-name=libstdc++.so"))
    return () if found else ("-l:libstdc++.so.6",)


def cuda_include() -> Path:
    """The folder of CUDA's runtime headers. What they include of the compiler's lies there too, or, in CUDA 12's
    wheels, in a folder beside it.

    :raises BridgeError: there is none, or nothing has the rest.
    """
    site_packages = Path(torch.__file__).parent.parent
    looked_at, wheels = list(_cuda_folders(site_packages)), _wheels(site_packages)
    for folder in looked_at:
        together = [folder, *wheels] if folder in wheels else [folder]
        if (folder / _OF_RUNTIME).is_file() and any((at / _OF_COMPILER).is_file() for at in together):
            return folder
    raise BridgeError(
        f"CUDA's headers ({' and '.join(_CUDA_HEADERS)}) are in none of {', '.join(map(str, looked_at))}: install a "
        f"CUDA {torch.version.cuda} toolkit, or the packages nvidia-cuda-runtime and nvidia-cuda-crt (before CUDA 13: "
        "nvidia-cuda-runtime-cu12 and nvidia-cuda-nvcc-cu12), or set CUDA_HOME"
    )


def _wheels(site_packages: Path) -> list[Path]:
    """What comes as packages: one folder for all since CUDA 13, one for each before."""
    return sorted((site_packages / "nvidia").glob("*/include"))


def _cuda_folders(site_packages: Path) -> Iterator[Path]:
    """What the person named; the wheels that torch came with, which have its version; toolkits; where nvcc lies."""
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if named := os.environ.get(variable):
            yield Path(named, "include")
    yield from _wheels(site_packages)
    version = torch.version.cuda or ""  # an empty one matches every toolkit
    for pattern in (f"cuda-{version}", f"cuda-{version.partition('.')[0]}*", "cuda"):
        yield from sorted(_TOOLKITS.glob(f"{pattern}/include"), reverse=True)
    if nvcc := shutil.which("nvcc"):
        toolkit = Path(nvcc).resolve().parent.parent
        yield toolkit / "include"
        yield from sorted(toolkit.glob("targets/*/include"))
