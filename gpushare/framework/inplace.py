"""Watching one call inside a function of torch without a frame of ours on the stack: tracebacks, and the line that
a warning names (`stacklevel`), stay as under plain python, and so does the function that the compiler knows."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable


def around_call(
    function: types.FunctionType, callee: str, before: Callable[[], object], after: Callable[[], object]
) -> None:
    """In `function`, call `before` ahead of the one statement that is a call of `callee`, and `after` behind it.

    The function keeps its identity, its names and its line numbers. An error in between leaves `after` out.

    :raises ValueError: there is no such statement, or more than one.
    """
    tree = ast.parse(inspect.getsource(function))
    ast.increment_lineno(tree, function.__code__.co_firstlineno - 1)
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    places = [i for i, statement in enumerate(definition.body) if _calls(statement, callee)]
    if len(places) != 1:
        raise ValueError(f"{function.__qualname__} has {len(places)} statements that call {callee}, not one")
    place = places[0]
    watched = definition.body[place]
    definition.body[place : place + 1] = [_call(before, watched), watched, _call(after, watched)]
    for called in (before, after):
        function.__globals__[_name(called)] = called
    flags = function.__code__.co_flags & _FUTURES
    module = compile(tree, function.__code__.co_filename, "exec", flags, dont_inherit=True)
    function.__code__ = next(
        code
        for code in module.co_consts
        if isinstance(code, types.CodeType) and code.co_name == function.__name__
    )


# `from __future__ import annotations`; what else there is has long been the rule.
_FUTURES = 0x1000000


def _calls(statement: ast.stmt, callee: str) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == callee


def _name(called: Callable[[], object]) -> str:
    return f"_gpushare_{called.__name__}"


def _call(called: Callable[[], object], beside: ast.stmt) -> ast.stmt:
    name = ast.Name(_name(called), ast.Load())
    return ast.fix_missing_locations(ast.copy_location(ast.Expr(ast.Call(name, [], [])), beside))
