"""Which jobs are begun: Salus's condition (section 4.1). What all keep between iterations, and the most that one of
them needs beyond that, fit together; so each of them can run, at least one at a time.

A job whose need is known from a saved profile waits here, before its script has done anything, until others have
ended. One without a profile is begun: the shim charges it as it goes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from gpushare.units import format_bytes

_LOOK_EVERY_S = 0.5


@dataclass(frozen=True)
class Need:
    """Bytes: what a job keeps between its iterations, and the most that it holds in one."""

    residue_bytes: int
    peak_bytes: int

    @property
    def beyond_bytes(self) -> int:
        """That an iteration holds at its peak beyond what is kept."""
        return self.peak_bytes - self.residue_bytes

    @classmethod
    def of_curve(cls, held_bytes: Sequence[int], residue_bytes: int) -> Need:
        """What an iteration shows."""
        return cls(residue_bytes, max(held_bytes))

    def or_more(self, other: Need) -> Need:
        """The larger one of each."""
        residue_bytes = max(self.residue_bytes, other.residue_bytes)
        return Need(residue_bytes, max(self.peak_bytes, other.peak_bytes))


class Entrant(Protocol):
    """A job that waits to be begun. `standing`: the lowest goes first. `need`: None where nothing is known of it."""

    @property
    def standing(self) -> tuple[int, int]: ...

    @property
    def need(self) -> Need | None: ...


E = TypeVar("E", bound=Entrant)


def missing_bytes(newcomer: Need, others: Iterable[Need], room_bytes: int) -> int:
    """By how much the newcomer does not fit beside the others; nought or less if it does."""
    every = [newcomer, *others]
    beyond = max(need.beyond_bytes for need in every)
    return sum(need.residue_bytes for need in every) + beyond - room_bytes


def first_to_begin(
    waiting: Iterable[E], others: Iterable[Need], room_bytes: int, at_once: int | None = None
) -> E | None:
    """Who begins next beside the others: of those that fit the first one; None if none does.

    Alone everyone is begun: one that needs more than there is comes to be refused with the figures.

    :param at_once: so many were found to do more than those that fit (`scheduling.fewer`).
    """
    beside = list(others)
    many = at_once is not None and len(beside) >= at_once

    def fits(entrant: E) -> bool:
        need = entrant.need
        return need is None or not beside or (not many and missing_bytes(need, beside, room_bytes) <= 0)

    return next(filter(fits, sorted(waiting, key=lambda entrant: entrant.standing)), None)


def why_not_yet(name: str, newcomer: Need, others: Mapping[str, Need], room_bytes: int) -> str:
    """For the person who waits."""
    if missing_bytes(newcomer, others.values(), room_bytes) <= 0:
        return (
            f"{name} waits for another job to end: fewer jobs at once were found to do more than all that fit"
        )
    every = {name: newcomer, **others}
    keep = sum(need.residue_bytes for need in every.values())
    largest = max(every, key=lambda one: every[one].beyond_bytes)
    more, own = every[largest].beyond_bytes, newcomer.residue_bytes
    return (
        f"{name} waits for another job to end: with it, which by its saved profile keeps {format_bytes(own)} between "
        f"iterations, {', '.join(every)} would keep {format_bytes(keep)}, and {largest} needs {format_bytes(more)} "
        f"more in one: {format_bytes(keep + more)}, where the budget has {format_bytes(room_bytes)} for all"
    )


def queues(policy: str) -> bool:
    """Whether jobs wait to be begun under this policy."""
    return policy != "unmanaged"


def why_unknown(names: Sequence[str]) -> str:
    """For the person who asks for a smaller budget."""
    need, its = ("needs", "its") if len(names) == 1 else ("need", "their")
    return (
        f"the budget can't be made smaller yet: what {', '.join(names)} {need} is not known before {its} first "
        "iterations have been measured; ask again later, or say --force to cut it all the same"
    )


@dataclass(frozen=True)
class Queued:
    """A wait in the queue, in nanoseconds on CLOCK_MONOTONIC, for the job of an account; 0: for none in particular."""

    asked_ns: int
    waited_ns: int
    for_account: int


@dataclass(eq=False)
class _Waiting:
    name: str
    rank: int
    came: int
    need: Need | None
    asked_ns: int = field(default_factory=time.monotonic_ns)
    told: bool = False
    for_account: int = 0  # the last that ended meanwhile, else one that keeps the most

    @property
    def standing(self) -> tuple[int, int]:
        return self.rank, self.came


class Queue:
    """Jobs that wait to be begun. To be called from any thread.

    :param room: bytes of the budget for jobs, now.
    :param measured: what a job that has begun needs as far as it was measured, by its account.
    :param at_once: how many jobs at once do more than all that fit; None: that is not known.
    """

    def __init__(
        self,
        room: Callable[[], int],
        measured: Callable[[int], Need],
        at_once: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._room, self._measured, self._at_once = room, measured, at_once
        self._begun: dict[str, int] = {}  # accounts by name
        self._expected: dict[str, Need] = {}
        self._waiting: list[_Waiting] = []
        self._came = self._expected_jobs = 0
        self._changed = threading.Condition()

    def expect(self, jobs: int) -> None:
        """So many will enter; before that nobody begins who has to fit."""
        with self._changed:
            self._expected_jobs = jobs

    def enter(
        self,
        name: str,
        account: int,
        need: Need | None,
        *,
        rank: int,
        note: Callable[[str], None],
        queued: Callable[[Queued], None],
        given_up: Callable[[], bool],
    ) -> bool:
        """Return when the job may begin: at once without a `need`. False: it was given up first.

        :param rank: of those that wait the lowest goes first; another one may pass it if only that one fits.
        :param queued: is told of the wait, once it is over, of a job that did not fit.
        """
        with self._changed:
            waiting = _Waiting(name, rank, self._came, need)
            self._came += 1
            self._changed.notify_all()
            self._waiting.append(waiting)
            while not given_up():
                if need is None or self._may_begin(waiting):
                    break
                if not waiting.told and self._came >= self._expected_jobs and not self._fits(waiting):
                    needs = self._needs()
                    note(why_not_yet(name, need, needs, self._room()))
                    waiting.told = True
                    waiting.for_account = self._begun[
                        max(needs, key=lambda other: needs[other].residue_bytes)
                    ]
                self._changed.wait(_LOOK_EVERY_S)
            self._waiting.remove(waiting)
            if waiting.told:
                waited_ns = time.monotonic_ns() - waiting.asked_ns
                queued(Queued(waiting.asked_ns, waited_ns, waiting.for_account))
            if given_up():
                return False
            self._begun[name] = account
            if need:
                self._expected[name] = need
            self._changed.notify_all()
            return True

    def leave(self, name: str) -> None:
        """The job ended."""
        with self._changed:
            account = self._begun.pop(name, None)
            self._expected.pop(name, None)
            for waiting in self._waiting:
                if waiting.told and account is not None:
                    waiting.for_account = account
            self._changed.notify_all()

    def why_no_cut(self, budget_bytes: int, is_measured: Callable[[int], bool], *, force: bool) -> str | None:
        """Why the budget can't become so small; None if nothing that is known of the jobs here is in the way.

        :param is_measured: whether the shim knows the iterations of a job that has begun, by its account.
        :param force: jobs of which nothing is known yet are no reason.
        """
        with self._changed:
            only_starting = self._came < self._expected_jobs
            unmeasured = [name for name, account in self._begun.items() if not is_measured(account)]
            needs = {name: self._expected.get(name) for name in unmeasured}
            needs |= {w.name: w.need for w in self._waiting if w.need}
        if only_starting and not force:
            return (
                "the budget can't be made smaller yet: the jobs are only starting; ask again, or say --force"
            )
        unknown = [name for name, need in needs.items() if need is None]
        if unknown and not force:
            return why_unknown(unknown)
        for name, need in needs.items():
            if need and need.peak_bytes > budget_bytes:
                return (
                    f"the budget can't be {format_bytes(budget_bytes)}: {name} needs at least "
                    f"{format_bytes(need.peak_bytes)} by its saved profile"
                )
        return None

    def _may_begin(self, waiting: _Waiting) -> bool:
        return self._came >= self._expected_jobs and self._first(self._waiting) is waiting

    def _fits(self, waiting: _Waiting) -> bool:
        return self._first([waiting]) is waiting

    def _first(self, waiting: Sequence[_Waiting]) -> _Waiting | None:
        return first_to_begin(waiting, self._needs().values(), self._room(), self._at_once())

    def _needs(self) -> dict[str, Need]:
        return {name: self._need(name, account) for name, account in self._begun.items()}

    def _need(self, name: str, account: int) -> Need:
        return self._measured(account).or_more(self._expected.get(name, Need(0, 0)))
