"""Makes the bridge (`shim/bridge/`) torch's CUDA allocator; compiled when it is first used, then kept.

Without a compiler or headers the plain pluggable allocator takes its place (`cuda_plain`), and the person is told.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import torch

from gpushare.framework import cuda_cache, cuda_plain, cuda_questions, cuda_toolchain
from gpushare.framework.cuda_toolchain import BridgeError, Toolchain
from gpushare.native import bridge, library

_FLAGS = ("-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden")
_LIBRARIES = ("-lc10", "-lc10_cuda", "-ltorch_cuda")
_NO_ACCOUNT = 0  # no job's: nothing has a workspace yet
_NO_WORKSPACES = (
    "the allocator's bridge was built without {headers}, so that it can't tell whose cuBLAS's workspaces are: let no "
    "two jobs use torch.compile(mode='reduce-overhead') at once, since the recording of one frees what a graph of the "
    "other uses. Install a whole CUDA toolkit, or the packages nvidia-cublas, nvidia-cusparse, nvidia-cusolver and "
    "nvidia-cuda-cccl (before CUDA 13 their names end with -cu12)"
)


def install(note: Callable[[str], None]) -> None:
    """Take over CUDA memory. The shim must be started on a GPU, and torch must not have initialised CUDA.

    `note` tells the person what does not work, where the bridge can't be had.

    :raises NativeError: torch does not take the allocator.
    """
    try:
        tools = cuda_toolchain.find()
        load(build(tools))
        if not bridge.clear_workspaces(_NO_ACCOUNT):
            note(
                _NO_WORKSPACES.format(
                    headers=", ".join(tools.missing_headers) or "headers of CUDA's libraries"
                )
            )
    except BridgeError as error:
        note(
            f"the allocator's bridge to torch {torch.__version__} can't be built: {error}. Without it CUDA memory "
            "works through torch's pluggable allocator: slower, without CUDA graphs, and with "
            "torch.backends.cudnn.benchmark held off. Let no two jobs use recurrent networks with dropout at once: "
            "they would draw from each other's state."
        )
        cuda_plain.install()
    cuda_questions.install()


def sources() -> list[Path]:
    """All that the result depends on, beside torch and CUDA."""
    folder = library.source_path()
    return [*sorted((folder / "bridge").iterdir()), folder / "include" / "gpushare.h"]


def command(tools: Toolchain) -> list[str]:
    """How the bridge is compiled, as one unit: torch's headers take most of the time."""
    return _command(tools, library.source_path())


def _command(tools: Toolchain, folder: Path) -> list[str]:
    parts = [path.name for path in sources() if path.suffix == ".cpp"]
    includes = [
        tools.torch_include,
        tools.torch_include / "torch" / "csrc" / "api" / "include",
        tools.cuda_include,
    ]
    return [
        tools.compiler,
        *_FLAGS,
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        *(argument for path in includes for argument in ("-isystem", str(path))),
        *(argument for path in tools.cuda_libraries_include for argument in ("-idirafter", str(path))),
        f"-I{folder / 'include'}",
        *(argument for path in parts[1:] for argument in ("-include", str(folder / "bridge" / path))),
        str(folder / "bridge" / parts[0]),
        f"-L{tools.torch_libraries}",
        f"-Wl,-rpath,{tools.torch_libraries}",
        *_LIBRARIES,
        *tools.cxx_library,
    ]


def path(tools: Toolchain) -> Path:
    """Where the bridge for this torch and compiler is kept."""
    what = {
        "torch": torch.__version__,
        "git": torch.version.git_version or "",
        "cuda": torch.version.cuda or "",
        "abi": str(torch.compiled_with_cxx11_abi()),
        "compiler": tools.version,
        # Wherever the sources lie: a checkout's and an installed package's are the same bridge.
        "command": " ".join(_command(tools, Path("sources"))),
        "without": " ".join(tools.missing_headers),  # a folder may come to have them later
        "searched": " ".join(os.environ.get(name, "") for name in ("CPATH", "CPLUS_INCLUDE_PATH")),
    }
    return cuda_cache.folder() / f"{cuda_cache.key(sources(), what)}.so"


def build(tools: Toolchain) -> Path:
    """The compiled bridge, compiled now if it has not been.

    :raises BridgeError: it can't be.
    """
    at = path(tools)
    if not at.exists():
        cuda_cache.compile_to(at, command(tools))
    return at


def load(at: Path) -> None:
    """Install what was compiled; a file that can't be loaded does not stay in the cache.

    :raises BridgeError: it can't be loaded.
    :raises NativeError: torch does not take it.
    """
    try:
        bridge.install(at)
    except OSError as error:
        at.unlink(missing_ok=True)
        raise BridgeError(f"the compiled bridge can't be loaded: {error}") from error
