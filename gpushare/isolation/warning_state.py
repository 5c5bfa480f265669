"""`warnings` per job: filters, what was shown already, and functions that a script replaces.

The C code asks the module for its attributes, so properties of the module's class answer it; the functions
that use the module's globals are replaced.
"""

from __future__ import annotations

import sys
import threading
import types
import warnings
from functools import wraps
from typing import Any

from gpushare.isolation import attributes, context, interrupts
from gpushare.isolation.perjob import PerJob
from gpushare.isolation.replace import replace_everywhere

_warnings: Any = warnings
_jobs: list[context.JobContext] = []
_filters: PerJob[list[Any]] = PerJob(_warnings.filters, lambda: list(_filters.host))
_registries: PerJob[dict[str, dict[Any, Any]]] = PerJob({}, dict)
_warn_explicit = warnings.warn_explicit
_mutated = _warnings._filters_mutated
_mutated_held: Any = getattr(
    warnings, "_filters_mutated_lock_held", None
)  # from 3.14 on, with the module's lock


class _Blocks(threading.local):
    open = 0  # of shared imports, in the calling thread


_blocks = _Blocks()


class _Module(types.ModuleType):
    pass


def _count_blocks() -> None:
    """What a shared module sets for the length of a block, while it is imported, is not for others: the end of the
    block takes it back from the calling job's list only."""
    kind: Any = warnings.catch_warnings
    begin, end = kind.__enter__, kind.__exit__

    @wraps(begin)
    def enter_counted(self: Any) -> Any:
        begun = begin(self)
        self._of_import = int(context.importing_shared())
        _blocks.open += self._of_import
        return begun

    @wraps(end)
    def exit_counted(self: Any, *error: Any) -> Any:
        _blocks.open -= vars(self).pop("_of_import", 0)
        return end(self, *error)

    kind.__enter__, kind.__exit__ = enter_counted, exit_counted


def _property(value: PerJob[Any]) -> property:
    return property(lambda _: value.get(), lambda _, new: value.set(new))


def _all_lists() -> list[list[Any]]:
    if not context.importing_shared() or _blocks.open:
        return [_filters.get()]
    return [_filters.host, *(_filters.of(job) for job in _jobs)]


def _add_filter(*item: Any, append: bool) -> None:
    for filters in _all_lists():
        if append:
            if item not in filters:
                filters.append(item)
        else:
            if item in filters:
                filters.remove(item)
            filters.insert(0, item)
    _filters_mutated()


def _resetwarnings() -> None:
    """Clear the list of warning filters, so that no filters are active."""
    for filters in _all_lists():
        filters.clear()
    _filters_mutated()


def _filters_mutated() -> None:
    """What was shown may be shown again to the calling job. Not to others where a shared module changes the filters of
    all: alone they would not import it.

    The interpreter has one number for it, at whose change it forgets what was shown, job by job and place by place.
    """
    job = context.current()
    if job is None or not context.in_host() or len(_jobs) < 2:
        _forget_shown()
        return
    _registries.of(job).clear()
    for module in list(job.modules.values()):  # what C code warns of
        vars(module).get("__warningregistry__", {}).clear()


def _forget_shown() -> None:
    if _mutated_held is None:
        _mutated()
        return
    with interrupts.held_back(), _warnings._lock:
        _mutated_held()


def _showwarnmsg(message: Any) -> None:
    show = warnings.showwarning
    if show is _warnings._showwarning_orig:
        _warnings._showwarnmsg_impl(message)
    else:
        m = message
        show(m.message, m.category, m.filename, m.lineno, m.file, m.line)


def _formatwarnmsg(message: Any) -> str:
    form, m = warnings.formatwarning, message
    if form is _warnings._formatwarning_orig:
        return str(_warnings._formatwarnmsg_impl(m))
    return form(m.message, m.category, m.filename, m.lineno, m.line)


def _internal(frame: types.FrameType) -> bool:
    name = frame.f_code.co_filename
    return "importlib" in name and "_bootstrap" in name


def _caller(stacklevel: int) -> types.FrameType | None:
    """The frame that is blamed, by the rules of the interpreter's own `warn`."""
    frame: types.FrameType | None = sys._getframe(2)
    if stacklevel <= 1 or (frame and _internal(frame)):
        for _ in range(stacklevel - 1):
            frame = frame.f_back if frame else None
        return frame
    for _ in range(stacklevel - 1):
        frame = frame.f_back if frame else None
        while frame and _internal(frame):
            frame = frame.f_back
    return frame


def _warn(message: Any, category: Any = None, stacklevel: int = 1, source: Any = None, **more: Any) -> None:
    """Issue a warning, or maybe ignore it or raise an exception."""
    if context.current() is None or more:
        _original_warn(message, category, stacklevel + 1, source, **more)
        return
    if isinstance(message, Warning):
        category = message.__class__
    elif category is None:
        category = UserWarning
    if not (isinstance(category, type) and issubclass(category, Warning)):
        raise TypeError(f"category must be a Warning subclass, not '{type(category).__name__}'")
    frame = _caller(stacklevel)
    names = frame.f_globals if frame else sys.__dict__
    file, line = (frame.f_code.co_filename, frame.f_lineno) if frame else ("sys", 1)
    registry = _registries.get().setdefault(file, {})
    _warn_explicit(message, category, file, line, names.get("__name__", "<string>"), registry, None, source)


_original_warn = warnings.warn


def install() -> None:
    """Replace the functions, and answer for the module's attributes."""
    kind: Any = _Module
    kind.filters = _property(_filters)
    once = _warnings.onceregistry
    for name, make in (("onceregistry", dict), ("defaultaction", lambda: "default")):
        setattr(_Module, name, _property(PerJob(once if make is dict else "default", make)))
    for name in ("showwarning", "formatwarning", "_showwarnmsg_impl"):
        original = vars(warnings)[name]
        value: PerJob[Any] = PerJob(original, None, imports_set_all=True)
        setattr(_Module, name, _property(value))
    for name, function in (
        ("_add_filter", _add_filter),
        ("_filters_mutated", _filters_mutated),
        ("_filters_mutated_lock_held", _filters_mutated),
        ("resetwarnings", _resetwarnings),
        ("_showwarnmsg", _showwarnmsg),
        ("_formatwarnmsg", _formatwarnmsg),
    ):
        if name in vars(warnings):
            vars(warnings)[name] = function
    _count_blocks()
    attributes.give_class(warnings, _Module)
    replace_everywhere([(_original_warn, _warn)], but=__name__)


def enter(job: context.JobContext) -> None:
    """The job begins with the host's filters."""
    _filters.of(job)
    _jobs.append(job)


def leave(job: context.JobContext) -> None:
    """Forget the job."""
    _jobs.remove(job)
