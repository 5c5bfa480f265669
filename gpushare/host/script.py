"""Running a script as python would: its code, its module, its last words."""

from __future__ import annotations

import runpy
import sys
import traceback
import types
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from typing import Any

from gpushare.isolation.context import JobContext


def load(kind: str, target: str, cwd: str, job: JobContext) -> types.CodeType:
    """Compile the script and prepare the job's `__main__` for it.

    :raises ImportError: a module given with `-m` was not found.
    """
    names = vars(job.main)
    if kind == "module":
        finder: Any = runpy
        spec: ModuleSpec
        code: types.CodeType
        _, spec, code = finder._get_module_details(target)
        job.argv[0] = str(spec.origin)
        names.update(
            __file__=spec.origin,
            __spec__=spec,
            __loader__=spec.loader,
            __package__=spec.parent,
            __cached__=spec.cached,
        )
        return code
    path = str(Path(cwd) / target)
    loader = SourceFileLoader("__main__", path)
    names.update(__file__=path, __spec__=None, __package__=None, __cached__=None, __loader__=loader)
    return compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)


def search_path(kind: str, target: str, cwd: str) -> str:
    """What python puts first in `sys.path`."""
    return cwd if kind == "module" else str((Path(cwd) / target).resolve().parent)


def exit_code(error: SystemExit, job: JobContext) -> int:
    """Code of a `sys.exit`; a message goes to stderr as python does."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    print(error.code, file=job.stderr)
    return 1


def print_exception(error: BaseException, job: JobContext) -> None:
    """The traceback, without the host's own frames at its top."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_globals.get("__name__") == "gpushare.host.jobs":
        frames = frames.tb_next
    hook: Any = sys.excepthook
    if hook is not sys.__excepthook__:
        hook(type(error), error.with_traceback(frames), frames)
        return
    traceback.print_exception(type(error), error, frames, file=job.stderr)
