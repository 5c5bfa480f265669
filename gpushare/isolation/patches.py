"""What a script assigns to shared classes and modules is its own: `torch.load = partial(torch.load, ...)`,
`nn.Linear.forward = mine`, `np.float = float`.

Assignments of a script's own code are seen by the interpreter's leave (`native/assignments.py`). The first one to an
attribute puts something in its place that answers per job, for whoever asks the class or the module. A module's own
functions find its names without asking it: there lies a stand where one can do (`stands.py`), and where none can (a
number, say), all jobs have what was set last, and are told. When no job is left that has set it, all is as before.
"""

from __future__ import annotations

import builtins
import reprlib
import sys
import threading
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from gpushare.isolation import attributes, context, imports, interrupts, ownership, switch
from gpushare.isolation.attributes import MISSING
from gpushare.isolation.class_attributes import ClassAttribute
from gpushare.isolation.global_names import forget, uses
from gpushare.isolation.perjob import PerJob
from gpushare.isolation.shared_attribute import SharedAttribute
from gpushare.isolation.special_names import is_special
from gpushare.isolation.stands import can_stand, stand_for
from gpushare.native import assignments
from gpushare.native.library import NativeError

_IMMUTABLE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE


class _Split:
    """An attribute that each job has for itself.

    :param shown: what lies in its place for all jobs.
    :param is_called: by a module's own code, through a stand.
    """

    def __init__(
        self,
        target: Any,
        value: PerJob[Any],
        shown: Any,
        take_back: Callable[[], None],
        is_called: bool = False,
    ) -> None:
        self.target, self.value, self.take_back = target, value, take_back
        self._shown, self._is_called = shown, is_called
        self._before: PerJob[deque[Any]] = PerJob(_values_before(), _values_before)

    def set(self, job: context.JobContext, name: str, value: Any) -> bool:
        if self._is_called and value is not MISSING and not callable(value):
            job.note(
                f"{job.name} sets {_title(self.target, name)} to {reprlib.repr(value)}: the module's own code goes on "
                "to call what can be called; run such a script alone"
            )
        if value is MISSING and self.value.get() is MISSING:
            raise AttributeError(name)
        before = self._before.get()
        if value is self._shown and value is not MISSING:
            value = before.pop() if before else self.value.host
        else:
            before.append(_kept(self.value.get(), self.value.host))
        self.value.set(value)
        if value is self.value.host:
            job.values.pop(self.value, None)
        return True

    def is_over(self, leaving: context.JobContext | None = None) -> bool:
        """Whether nobody else has set it, so that it can be as before."""
        return not any(self.value in job.values for job in switch.live if job is not leaving)


def _values_before() -> deque[Any]:
    """For who takes what `vars(target)` shows, sets something else for a while and puts it back, as mocks do."""
    return deque(maxlen=16)


def _kept(value: Any, host: Any) -> Any:
    """Functions and the like; a tensor, say, must not live on for it."""
    return value if callable(value) or hasattr(type(value), "__get__") else host


_lock = interrupts.whole(threading.RLock())
_known: dict[
    tuple[int, str], _Split | SharedAttribute
] = {}  # by id() of a target, which they keep alive, and name
_shared_builtins = vars(builtins)
_patched_by_packages: dict[int, Any] = {}  # by id(): a class may have an `==` of its own
_is_watching = _is_changing = False


def _assign(target: Any, name: str, value: Any) -> bool:
    """Of a script's code, or of anybody's to a target of which attributes are split; False: to be done plainly."""
    job = context.current()
    if not context.in_host():
        return False
    counts = id(target) in _patched_by_packages or sys._getframe(1).f_builtins is not _shared_builtins
    with _lock:
        if _is_changing:
            return False
        known = _known.get((id(target), name))
        if known is None and counts and job is not None and _is_shared(job, target):
            known = _begin(target, name, value)
        if isinstance(known, _Split) and job is None:
            known.value.set(value)
            return True
        if known is None or job is None or not known.set(job, name, value):
            return False
        if isinstance(known, _Split) and known.is_over():
            _end(target, name, known)
    return True


@contextmanager
def _changing() -> Iterator[None]:
    """What is assigned meanwhile, by who has the lock, is ours."""
    global _is_changing
    before, _is_changing = _is_changing, True
    try:
        yield
    finally:
        _is_changing = before


def _put_ours(target: Any, name: str, value: Any) -> None:
    with _changing():
        _put(target, name, value)


def _end(target: Any, name: str, split: _Split) -> None:
    """It is as before."""
    with _changing():
        split.take_back()
    del _known[id(target), name]
    if id(target) not in _patched_by_packages and not any(known == id(target) for known, _ in _known):
        assignments.unmark(target)


def _begin(target: Any, name: str, value: Any) -> _Split | SharedAttribute | None:
    if _is_set_by_its_kind(target, name):
        return None
    split = _split_class if isinstance(target, type) else _split_module
    with _changing():
        found = split(target, name, value)
    if found is not None:
        _known[id(target), name] = found
    return found


def _split_class(target: type, name: str, _: Any) -> _Split | SharedAttribute | None:
    original = vars(target).get(name, MISSING)
    if target.__flags__ & _IMMUTABLE:
        return None  # refuses
    if isinstance(original, ClassAttribute):
        return _Split(target, original.value, original, lambda: None)
    # Who asks for a special method finds a class that has one, whatever the method answers.
    if original is MISSING and is_special(name) and not hasattr(target, name):
        return _shared(target, name)
    value = PerJob(original, None, imports_set_all=True)
    shown = ClassAttribute(target, name, value)
    setattr(target, name, shown)
    assignments.mark(target)
    return _Split(target, value, shown, lambda: _put(target, name, value.host))


def _split_module(target: types.ModuleType, name: str, new: Any) -> _Split | SharedAttribute | None:
    if name.startswith("__") and name.endswith("__"):  # the import system's
        return None
    original = vars(target).get(name, MISSING)
    found = uses(target, name)
    if found.written or (found.read and not can_stand(original, new, name)):
        return _shared(target, name)
    value = PerJob(original, None, imports_set_all=True)
    # Torch's compiler looks among a module's names first, too.
    is_called = can_stand(original, new, name) and (found.read or original is not MISSING)
    shown = stand_for(value, name) if is_called else MISSING
    if is_called:
        vars(target)[name] = shown
    attributes.make_per_job(target, name, value)
    if not is_called:
        vars(target).pop(name, None)
    assignments.mark(target)

    def take_back() -> None:
        if value.host is not MISSING:
            vars(target)[name] = value.host
        else:
            vars(target).pop(name, None)
        attributes.make_shared(target, name)

    return _Split(target, value, shown, take_back, is_called=found.read)


def _shared(target: Any, name: str) -> SharedAttribute:
    return SharedAttribute(target, name, _title(target, name), lambda value: _put_ours(target, name, value))


def _put(target: Any, name: str, value: Any) -> None:
    if value is not MISSING:
        setattr(target, name, value)
    elif name in vars(target):
        delattr(target, name)


def _is_set_by_its_kind(target: Any, name: str) -> bool:
    """A property of the target's class, say of a module that looks after its switches, does what is to be done."""
    kinds = [kind for kind in type(target).__mro__ if name in vars(kind)]
    return bool(kinds) and hasattr(type(vars(kinds[0])[name]), "__set__")


def _is_shared(job: context.JobContext, target: Any) -> bool:
    if isinstance(target, type):
        module = getattr(target, "__module__", None)
        is_found = isinstance(module, str) and module in sys.modules and "<locals>" not in target.__qualname__
        return is_found and not ownership.owns(job, str(module))
    name = vars(target).get("__name__")
    if not isinstance(name, str) or ownership.owns(job, name) or job.modules.get(name) is target:
        return False
    return sys.modules.get(name) is target


def _title(target: Any, name: str) -> str:
    place = f"{target.__module__}.{target.__qualname__}" if isinstance(target, type) else target.__name__
    return f"{place}.{name}"


def install() -> None:
    """Nothing: a job that is alone may do what it likes."""


def watch(note: Callable[[str], None]) -> None:
    """From now on each job's assignments are its own."""
    global _is_watching
    try:
        assignments.watch(_assign, MISSING)
    except NativeError as error:
        note(str(error))
        return
    _is_watching = True
    imports.at_each_end(forget)
    for target in _patched_by_packages.values():
        assignments.mark(target)


def also_by_packages(target: Any) -> None:
    """Of this class or module also what a package assigns for a job is the job's."""
    with _lock:
        _patched_by_packages[id(target)] = target
        if _is_watching:
            assignments.mark(target)


def for_all_jobs(target: Any, names: Iterable[str], assign: Callable[[], object]) -> None:
    """Call what assigns to these attributes, plainly. Not while a job has one of its own there."""
    with _lock:
        if not any((id(target), name) in _known for name in names):
            with _changing():
                assign()


def enter(job: context.JobContext) -> None:
    """Nothing: a job begins with what the host has."""


def leave(job: context.JobContext) -> None:
    """What nobody else has set is as before. Values go with the context."""
    with _lock:
        for (_, name), known in list(_known.items()):
            if isinstance(known, SharedAttribute):
                known.leave(job)
            elif known.is_over(job):
                _end(known.target, name, known)
