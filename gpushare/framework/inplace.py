"""Watching one call inside a function of torch, or adding to its answers, without a frame of ours on the stack:
tracebacks, and the line that a warning names (`stacklevel`), stay as under plain python, and so does the function that
the compiler knows."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Callable


def around_call(
    function: types.FunctionType,
    callee: str,
    before: Callable[..., object],
    after: Callable[..., object],
    *,
    told: tuple[str, ...] = (),
) -> None:
    """In `function`, call `before` ahead of the one statement that calls `callee`, and `after` behind it.

    Both are called with the values that the names in `told` have there. The function keeps its identity, its names
    and its line numbers. An error in between leaves `after` out.

    :raises ValueError: there is no such statement, or more than one.
    """
    definition = _definition(function)
    places = [i for i, statement in enumerate(definition.body) if _calls(statement, callee)]
    if len(places) != 1:
        raise ValueError(f"{function.__qualname__} has {len(places)} statements that call {callee}, not one")
    place = places[0]
    watched = definition.body[place]
    calls = [_call(called, told, watched) for called in (before, after)]
    definition.body[place : place + 1] = [calls[0], watched, calls[1]]
    for called in (before, after):
        function.__globals__[_name(called)] = called
    _take(function, definition)


def add_answer(function: types.FunctionType, key: str, answer: Callable[[], object]) -> None:
    """Have `function`, of one argument, return `answer()` where that is `key`; else it is as it was."""
    definition = _definition(function)
    (argument,) = definition.args.args
    first = ast.parse(f"if {argument.arg} == {key!r}: return {_name(answer)}()").body[0]
    definition.body.insert(0, ast.increment_lineno(first, definition.lineno - 1))
    function.__globals__[_name(answer)] = answer
    _take(function, definition)


def _definition(function: types.FunctionType) -> ast.FunctionDef:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    ast.increment_lineno(tree, function.__code__.co_firstlineno - 1)
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    return definition


def _take(function: types.FunctionType, definition: ast.FunctionDef) -> None:
    tree = ast.Module([definition], [])
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
    calls = (node.func for node in ast.walk(statement) if isinstance(node, ast.Call))
    return any(isinstance(called, ast.Name) and called.id == callee for called in calls)


def _name(called: Callable[..., object]) -> str:
    return f"_gpushare_{called.__name__}"


def _call(called: Callable[..., object], told: tuple[str, ...], beside: ast.stmt) -> ast.stmt:
    name = ast.Name(_name(called), ast.Load())
    arguments: list[ast.expr] = [ast.Name(local, ast.Load()) for local in told]
    return ast.fix_missing_locations(ast.copy_location(ast.Expr(ast.Call(name, arguments, [])), beside))
