"""The queue before jobs begin."""

import threading
import time
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from gpushare.scheduling.admission import Need, Queue, Queued, first_to_begin, missing_bytes

needs = st.builds(lambda residue, more: Need(residue, residue + more), st.integers(0, 9), st.integers(0, 9))


@given(newcomer=needs, others=st.lists(needs, max_size=4), room=st.integers(0, 60))
def test_who_is_admitted_leaves_each_the_room_to_run(newcomer: Need, others: list[Need], room: int) -> None:
    every = [newcomer, *others]
    each_can_run = all(
        sum(n.residue_bytes for n in every) - one.residue_bytes + one.peak_bytes <= room for one in every
    )
    assert (missing_bytes(newcomer, others, room) <= 0) == each_can_run


@dataclass(frozen=True)
class Entrant:
    """Somebody in the queue."""

    standing: tuple[int, int]
    need: Need | None


entrants = st.lists(
    st.builds(Entrant, st.tuples(st.integers(-1, 1), st.integers(0, 99)), st.none() | needs),
    max_size=5,
    unique_by=lambda entrant: entrant.standing,
)


@given(waiting=entrants, others=st.lists(needs, max_size=4), room=st.integers(0, 60))
def test_of_those_that_fit_the_first_begins(waiting: list[Entrant], others: list[Need], room: int) -> None:
    fit = [w for w in waiting if not others or w.need is None or missing_bytes(w.need, others, room) <= 0]
    assert first_to_begin(waiting, others, room) == min(fit, key=lambda w: w.standing, default=None)


@given(waiting=entrants, others=st.lists(needs, max_size=4), at_once=st.integers(1, 5))
def test_no_more_begin_than_were_best_at_once(
    waiting: list[Entrant], others: list[Need], at_once: int
) -> None:
    """But those of which nothing is known; all would fit."""
    may = [w for w in waiting if w.need is None or not others or len(others) < at_once]
    found = first_to_begin(waiting, others, 1000, at_once)
    assert found == min(may, key=lambda w: w.standing, default=None)


class Waiting(threading.Thread):
    """A job before it begins."""

    def __init__(self, queue: Queue, name: str, need: Need | None, rank: int = 0, account: int = 1) -> None:
        super().__init__(name=name, daemon=True)
        self._queue, self._need, self._rank, self._account = queue, need, rank, account
        self.notes: list[str] = []
        self.queued: list[Queued] = []
        self.told, self.begun, self.given_up = threading.Event(), threading.Event(), False
        self.start()

    def _note(self, text: str) -> None:
        self.notes.append(text)
        self.told.set()

    def run(self) -> None:
        began = self._queue.enter(
            self.name,
            self._account,
            self._need,
            rank=self._rank,
            note=self._note,
            queued=self.queued.append,
            given_up=lambda: self.given_up,
        )
        if began:
            self.begun.set()


def queue(room: int) -> Queue:
    return Queue(lambda: room, lambda account: Need(0, 0))


def test_a_job_waits_says_why_and_begins_when_another_has_ended() -> None:
    waits = queue(100 << 20)
    first = Waiting(waits, "first", Need(50 << 20, 90 << 20))
    assert first.begun.wait(5)
    second = Waiting(waits, "second", Need(30 << 20, 60 << 20))
    assert second.told.wait(5) and not second.begun.is_set()
    assert second.notes == [
        "second waits for another job to end: with it, which by its saved profile keeps 30.0 MiB between iterations, "
        "second, first would keep 80.0 MiB, and first needs 40.0 MiB more in one: 120.0 MiB, where the budget has "
        "100.0 MiB for all"
    ]
    small = Waiting(waits, "small", Need(5 << 20, 10 << 20))
    assert small.begun.wait(5)  # it passes who does not fit
    waits.leave("first")
    assert second.begun.wait(5)
    assert len(second.notes) == 1


def test_a_wait_in_the_queue_is_told_with_whom_it_was_for() -> None:
    waits = queue(100)
    first = Waiting(waits, "first", Need(40, 40), account=1)
    others = [first, Waiting(waits, "second", Need(45, 45), account=2)]
    assert all(other.begun.wait(5) and not other.queued for other in others)
    one, two = (Waiting(waits, name, Need(55, 55), account=3) for name in ("one", "two"))
    assert one.told.wait(5) and two.told.wait(5)
    two.given_up = True
    two.join(10)
    (given_up,) = two.queued
    assert given_up.for_account == 2  # keeps the most, and nobody has ended
    waits.leave("first")
    assert one.begun.wait(5)
    (wait,) = one.queued
    assert wait.for_account == 1 and 0 < wait.waited_ns <= time.monotonic_ns() - wait.asked_ns


def test_a_budget_is_not_cut_below_what_saved_profiles_say_nor_before_anything_is_known() -> None:
    waits = queue(100 << 20)
    waits.expect(1)

    def why(mib: int, *measured: int, force: bool = False) -> str:
        return waits.why_no_cut(mib << 20, lambda account: account in measured, force=force) or ""

    assert "the jobs are only starting" in why(60)
    assert Waiting(waits, "first", Need(50 << 20, 70 << 20)).begun.wait(5)
    assert not why(80)
    assert "60.0 MiB: first needs at least 70.0 MiB by its saved profile" in why(60)
    assert not why(60, 1)  # measured: what it needs is the shim's to say
    assert Waiting(waits, "second", Need(50 << 20, 80 << 20)).told.wait(5)
    assert "second needs at least 80.0 MiB" in why(70, 1)
    assert Waiting(waits, "third", None).begun.wait(5)
    assert "what third needs is not known before its" in why(90)
    assert not why(90, force=True) and "second needs" in why(70, force=True)


def test_the_first_in_rank_begins_first() -> None:
    waits = queue(100)
    running = Waiting(waits, "running", Need(90, 95))
    assert running.begun.wait(5)
    low = Waiting(waits, "low", Need(60, 70), rank=0)
    assert low.told.wait(5)
    high = Waiting(waits, "high", Need(60, 70), rank=-3)
    assert high.told.wait(5)
    waits.leave("running")
    assert high.begun.wait(5)
    assert not low.begun.wait(0.2)
    waits.leave("high")
    assert low.begun.wait(5)


def test_a_job_without_a_profile_begins_and_one_that_is_given_up_does_not() -> None:
    waits = queue(10)
    assert Waiting(waits, "known", Need(9, 10)).begun.wait(5)
    assert Waiting(waits, "unknown", None).begun.wait(5)
    late = Waiting(waits, "late", Need(5, 10))
    assert late.told.wait(5)
    late.given_up = True
    late.join(5)
    assert not late.is_alive() and not late.begun.is_set()


def test_nobody_begins_before_all_have_come() -> None:
    waits = queue(100)
    waits.expect(3)
    low = Waiting(waits, "low", Need(60, 70), rank=0)
    assert Waiting(waits, "unknown", None).begun.wait(5)
    assert not low.begun.wait(0.2)
    high = Waiting(waits, "high", Need(60, 70), rank=-3)
    assert high.begun.wait(5)
    assert low.told.wait(5) and not low.begun.is_set()
    waits.leave("high")
    assert low.begun.wait(5)


def test_who_would_fit_but_waits_is_told_that_fewer_are_faster() -> None:
    at_once = 1
    queue = Queue(lambda: 100, lambda account: Need(1, 2), at_once=lambda: at_once)
    queue.expect(2)
    first, second = Waiting(queue, "first", Need(1, 2)), Waiting(queue, "second", Need(1, 2), account=2)
    assert first.begun.wait(5) and second.told.wait(5) and not second.begun.is_set()
    assert "fewer jobs at once were found to do more than all that fit" in second.notes[0]
    at_once = 2
    assert second.begun.wait(5)
