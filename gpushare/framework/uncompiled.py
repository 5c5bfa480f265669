"""Functions of ours that torch calls from functions which a script compiles.

The compiler would trace them with the function that calls them, and what is done while it traces is not done again when
the compiled form runs; and where it stops tracing, at a backward pass, it would compile them by themselves, with
`torch.compiler.is_compiling` as a constant. It has `disable` for such functions, in a module that takes long to import
and that many scripts never need.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from gpushare.isolation import imports

P = ParamSpec("P")
R = TypeVar("R")

_MODULE = "torch._dynamo"
_hiding: list[Callable[[Any], None]] = []


def uncompiled(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, run as it is each time, with all that it calls, also from compiled code.

    For functions that exist before `tell_compiler` is called.
    """
    run = function

    @wraps(function)
    def as_it_is(*args: P.args, **kwargs: P.kwargs) -> R:
        return run(*args, **kwargs)

    def hide(compiler: Any) -> None:
        nonlocal run
        run = compiler.disable(function)
        compiler.skip(as_it_is)  # in place: torch has it already

    _hiding.append(hide)
    return as_it_is


def _hide_all(module: types.ModuleType) -> None:
    dynamo: Any = module
    for hide in _hiding:
        hide(dynamo.decorators)


def tell_compiler() -> None:
    """As soon as it has been imported."""
    imports.when_imported(_MODULE, _hide_all)
