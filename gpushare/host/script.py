"""Running a script as python would: its code, its module, its last words."""

from __future__ import annotations

import os
import runpy
import signal
import sys
import traceback
import types
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from typing import Any

from gpushare.isolation import handler_calls, interrupts
from gpushare.isolation.context import JobContext
from gpushare.isolation.exits import HardExit

# Before, the interpreter makes nothing special of KeyboardInterrupt's kin.
_FROM_3_14 = sys.version_info >= (3, 14)
LOST_OUTPUT = 120  # python's exit code when stdout could not be flushed
_NO_C_LONG = 0xFF
_INTERRUPTED = 128 + signal.SIGINT  # as a shell tells it: the interpreter ends itself by the signal


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
    path = os.path.join(cwd, target)  # as python does: "./a.py" keeps its dot
    loader = SourceFileLoader("__main__", path)
    names.update(__file__=path, __spec__=None, __package__=None, __cached__=None, __loader__=loader)
    return compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)


def execute(code: types.CodeType, job: JobContext) -> None:
    """Run it, to the end of the handlers of signals."""
    try:
        exec(code, vars(job.main))
    except HardExit:
        raise
    except BaseException:
        handler_calls.finish(job)
        raise
    handler_calls.finish(job)


def search_path(kind: str, target: str, cwd: str) -> str:
    """What python puts first in `sys.path`."""
    return cwd if kind == "module" else str((Path(cwd) / target).resolve().parent)


def exit_code(error: SystemExit) -> int:
    """Code of a `sys.exit`; a message goes to stderr as python does."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        # For what no C long holds the interpreter takes -1.
        return error.code & 0xFF if -sys.maxsize - 1 <= error.code <= sys.maxsize else _NO_C_LONG
    _say_last(error.code)
    return 1


def report(error: BaseException) -> int | None:
    """Give it to `sys.excepthook`; the exit code, if that is another one than 1: the hook exits with it, or nobody has
    caught a KeyboardInterrupt.

    :raises HardExit: the hook calls `os._exit`.
    """
    code = _told_to_hook(error)
    if code is None and (
        type(error) is KeyboardInterrupt or (_FROM_3_14 and isinstance(error, KeyboardInterrupt))
    ):
        return _INTERRUPTED
    return code


def _told_to_hook(error: BaseException) -> int | None:
    hook: Any = sys.excepthook
    if hook is sys.__excepthook__:
        with interrupts.held_back():  # the interpreter prints it in one piece
            _print_exception(error)
        return None
    frames = _of_the_script(error)
    try:
        hook(type(error), error.with_traceback(frames), frames)
    except HardExit:
        raise
    except SystemExit as end:
        return exit_code(end)
    except BaseException as second:
        _say("Error in sys.excepthook:")
        _print_exception(second)
        _say("\nOriginal exception was:")
        _print_exception(error)
    return None


def _of_the_script(error: BaseException) -> types.TracebackType | None:
    """The traceback, without the host's own frames at its top."""
    frames = error.__traceback__
    while frames is not None and str(frames.tb_frame.f_globals.get("__name__")).startswith("gpushare.host."):
        frames = frames.tb_next
    return frames


def _print_exception(error: BaseException) -> None:
    if sys.stderr is not None:  # as the interpreter does, which says nothing then
        traceback.print_exception(type(error), error, _of_the_script(error), file=sys.stderr)


def _say(text: object) -> None:
    if sys.stderr is not None:
        print(text, file=sys.stderr)


def _say_last(text: object) -> None:
    """The message of a `sys.exit`. Where it can't be made or written, only its line ends."""
    if sys.stderr is None:
        return
    for part in (text, "\n"):
        try:
            sys.stderr.write(str(part))
        except HardExit:
            raise
        except BaseException:  # whatever it is, the interpreter drops it here
            continue
