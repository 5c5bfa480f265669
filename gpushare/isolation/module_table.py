"""`sys.modules`: the shared modules, and for each job those that are its own (see `ownership`).

A dict that holds the shared modules itself. Names that a job owns are missing there, and what is missing is looked up
per job.

To look up a shared module must run no Python code. Compiled code does it where it can't bear to lose the GIL:
`torch.tensor` imports numpy in the initializer of a C++ static, and whoever gets the GIL meanwhile and comes to
the same static waits for it, with the GIL, for ever.
"""

from __future__ import annotations

import builtins
import sys
import threading
import types
from collections.abc import Iterator
from typing import Any, Self

from gpushare.isolation import context, interrupts, ownership
from gpushare.isolation.attributes import MISSING

Table = dict[str, types.ModuleType]
_OF_EACH = ("__main__", "builtins")  # every job has one of its own
_changing = interrupts.whole(threading.RLock())  # entries move between the tables


class ModuleTable(Table):
    """Modules by name, as the calling job sees them."""

    def __init__(self, modules: Table) -> None:
        super().__init__(modules)
        # Shared modules of names that some job owns.
        self._contested: Table = {name: super(ModuleTable, self).pop(name) for name in _OF_EACH}
        # Shared modules that a job is importing. A package may put another module in its own place at the end, so no
        # other job may have the half-made one: it would keep it.
        self._making: dict[str, tuple[context.JobContext, types.ModuleType]] = {}
        self._contested_tops = set(_OF_EACH)
        self._contested_names: set[str] = set()  # beside those
        self._tops = set(map(ownership.top_of, modules))  # of which each job has been asked

    def __missing__(self, name: str) -> types.ModuleType:
        if (own := _own_modules(name)) is not None:
            return own[name]
        if (making := self._making.get(name)) is None:
            return self._contested[name]
        if _is_hidden(*making):
            raise KeyError(name)
        return making[1]

    # `__getitem__` is the dict's, since it must run no Python code.

    def __setitem__(self, name: str, module: types.ModuleType) -> None:
        job = context.current()
        own = _own_modules(name)
        if own is None and job and (self._is_made_by(job, name) or self._is_replaced_by(job, name, module)):
            own = job.modules
        if own is not None:
            own[name] = module
            _give_builtins(own, module)
            return
        if self._shared_one(name) is module:
            return
        if job and ownership.is_nobodys(name):
            _keep_among_shared(module)
        self._ask_others(ownership.top_of(name))
        with _changing:
            if job and context.importing_shared() and _is_half_made(module):
                self._take_out(name)
                self._making[name] = job, module
            else:
                self._making.pop(name, None)
                self._put(name, module)

    def _is_made_by(self, job: context.JobContext, name: str) -> bool:
        """Whether the job's own code puts something there that there is not; what a shared module makes (torch's
        compiler, of code that it has generated) it may keep for all jobs."""
        builtins_of_job = job.modules.get("builtins")
        if builtins_of_job is None or _caller().f_builtins is not vars(builtins_of_job):
            return False
        if context.importing_shared() or self._shared_one(name) is not MISSING:
            return False
        if ownership.top_of(name) in self._tops:  # a part that a shared package does not have
            self._claim(job, name)
            return True
        return ownership.adopt(job, name)

    def _is_replaced_by(self, job: context.JobContext, name: str, module: Any = MISSING) -> bool:
        """Whether the job puts something else in the place of a shared module, or takes that away."""
        shared = self._shared_one(name)
        if context.importing_shared() or shared is MISSING or shared is module or _is_of_importing():
            return False
        self._claim(job, name)
        return True

    def _shared_one(self, name: str) -> Any:
        if (making := self._making.get(name)) is not None:
            return MISSING if _is_half_made(making[1]) else making[1]
        return dict.get(self, name, self._contested.get(name, MISSING))

    def _is_hidden(self, name: str) -> bool:
        making = self._making.get(name)
        return making is not None and _is_hidden(*making)

    def _claim(self, job: context.JobContext, name: str) -> None:
        ownership.claim(job, name)
        with _changing:
            self._contested_names.add(name)
            if name in dict.keys(self):
                self._contested[name] = super().pop(name)

    def give_back(self, job: context.JobContext) -> None:
        """What the job has claimed is found in the short way again, but for what others have."""
        others = (other for other in ownership.live_jobs() if other is not job)
        names = set(ownership.claimed(job)).difference(*map(ownership.claimed, others))
        with _changing:
            self._contested_names -= names
            for name in names & self._contested.keys():
                if not self._is_contested(name):
                    super().__setitem__(name, self._contested.pop(name))

    def _put(self, name: str, module: types.ModuleType) -> None:
        if self._is_contested(name):
            self._contested[name] = module
        else:
            super().__setitem__(name, module)

    def _take_out(self, name: str) -> Any:
        if name in self._making:
            return self._making.pop(name)[1]
        return self._contested.pop(name, MISSING) if self._is_contested(name) else super().pop(name, MISSING)

    def show(self) -> None:
        """All see what has been imported to its end."""
        with _changing:
            for name, (_, module) in list(self._making.items()):
                if not _is_half_made(module):
                    del self._making[name]
                    self._put(name, module)

    def __delitem__(self, name: str) -> None:
        self.pop(name)

    def __contains__(self, name: object) -> bool:
        return self.get(name, self) is not self

    def get(self, name: Any, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default

    def pop(self, name: str, *default: Any) -> Any:
        own = _own_modules(name)
        if own is not None:
            return own.pop(name, *default)
        job, shared = context.current(), self._shared_one(name)
        if job and self._is_replaced_by(job, name):
            return shared
        with _changing:
            if not self._is_hidden(name) and (found := self._take_out(name)) is not MISSING:
                return found  # None, where a script keeps others from importing it
        if default:
            return default[0]
        raise KeyError(name)

    def setdefault(self, name: str, default: Any = None) -> Any:
        if (found := self.get(name, self)) is not self:
            return found
        self[name] = default
        return default

    def update(self, *others: Any, **more: Any) -> None:
        for name, module in dict(*others, **more).items():
            self[name] = module

    def __ior__(self, other: Any) -> Self:  # type: ignore[misc, override]
        self.update(other)
        return self

    def popitem(self) -> tuple[str, types.ModuleType]:
        name = list(self)[-1]
        return name, self.pop(name)

    def clear(self) -> None:
        """Of a job's what is its own. What it shares with others stays: who clears the table is about to fill it again
        with what was there (`unittest.mock.patch.dict`)."""
        if (job := context.current()) is None:
            super().clear()
            return
        for name in list(self.copy()):
            if name not in _OF_EACH and (own := _own_modules(name)) is not None:
                own.pop(name, None)
        self.give_back(job)
        ownership.claimed(job).clear()

    # Snapshots, since other jobs import meanwhile. Some packages ask for one all the time, so of most names nobody asks
    # whose they are.
    def copy(self) -> Table:
        job = context.current()
        if job is None:
            return self.shared()
        own = {name: module for name, module in list(job.modules.items()) if _own_modules(name) is not None}
        with _changing:
            found = dict(dict.items(self))  # what no job owns
            others = self._contested | {name: module for name, (_, module) in self._making.items()}
        found |= {name: module for name, module in others.items() if _own_modules(name) is None}
        for name in filter(self._is_hidden, list(self._making)):
            found.pop(name, None)
        return found | own

    def shared(self) -> Table:
        """Those that are no job's."""
        with _changing:
            making = {name: module for name, (_, module) in self._making.items()}
            return dict(dict.items(self)) | self._contested | making

    def __iter__(self) -> Iterator[str]:
        return iter(self.copy())

    def __len__(self) -> int:
        return len(self.copy())

    def keys(self) -> Any:
        return self.copy().keys()

    def values(self) -> Any:
        return self.copy().values()

    def items(self) -> Any:
        return self.copy().items()

    def _is_contested(self, name: str) -> bool:
        return ownership.top_of(name) in self._contested_tops or name in self._contested_names

    def _ask_others(self, top: str) -> None:
        """A name that is new among the shared ones may be that of a module which another job owns."""
        if top not in self._tops:
            self._tops.add(top)
            if any(ownership.may_own(job, top) for job in ownership.live_jobs()):
                self._contest(top)

    def ask(self, job: context.JobContext) -> None:
        """Move out of the short way what the job owns."""
        for top in list(self._tops - self._contested_tops):
            if ownership.may_own(job, top):
                self._contest(top)

    def _contest(self, top: str) -> None:
        with _changing:
            self._contested_tops.add(top)
            moved = {name: module for name, module in dict.items(self) if ownership.top_of(name) == top}
            self._contested |= moved
            for name in moved:
                super().__delitem__(name)


def _caller() -> types.FrameType:
    """Who changes the table, or has it changed."""
    frame: types.FrameType = sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__") in (__name__, "unittest.mock", "contextlib"):
        frame = frame.f_back
    return frame


def _is_of_importing() -> bool:
    """Whether it is the interpreter's machinery, which also puts there what it has just taken out."""
    return _caller().f_code.co_filename.startswith("<frozen importlib")


def _is_half_made(module: Any) -> bool:
    """Whether it is being executed (`importlib._bootstrap._load_unlocked`)."""
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def _is_hidden(maker: context.JobContext, module: types.ModuleType) -> bool:
    """Not from who imports shared modules itself: circles are imported half made, as in any process."""
    job = context.current()
    return job is not None and job is not maker and not context.importing_shared() and _is_half_made(module)


def _own_modules(name: object) -> Table | None:
    job = context.current()
    if job is None or not isinstance(name, str):
        return None
    if name == "builtins":  # a shared module that is being imported may keep it for all jobs
        return job.modules if name in job.modules and not context.importing_shared() else None
    return job.modules if ownership.owns(job, name) else None


def _give_builtins(own: Table, module: Any) -> None:
    """Before the module is executed, which else would find those of the import machinery."""
    if isinstance(module, types.ModuleType) and "builtins" in own:
        vars(module).setdefault("__builtins__", vars(own["builtins"]))


def _import_as_shared(*args: Any, **kwargs: Any) -> types.ModuleType:
    context.count_shared_import(1)
    try:
        return builtins.__import__(*args, **kwargs)
    finally:
        context.count_shared_import(-1)


_import_as_shared.__code__ = _import_as_shared.__code__.replace(co_filename="<frozen importlib._bootstrap>")
_of_nobody: dict[str, Any] = {}  # builtins


def _keep_among_shared(module: Any) -> None:
    """What its functions import is nobody's as well, though a job calls them: objects of two copies must not meet."""
    if not _of_nobody:
        _of_nobody.update(vars(builtins), __import__=_import_as_shared)
    if isinstance(module, types.ModuleType):
        vars(module).setdefault("__builtins__", _of_nobody)


def after_fork_in_child() -> None:
    """Who held the lock is not there."""
    global _changing
    _changing = interrupts.whole(threading.RLock())
