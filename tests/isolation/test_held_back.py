"""Exceptions of other threads, held back where what all jobs share is taken."""

import threading
import time
from collections.abc import Callable

from gpushare.isolation import interrupts
from gpushare.native import library

library.load()


class Late(Exception):
    pass


class Later(Exception):
    pass


class Other:
    """A thread that runs `body`, and what has come of it."""

    def __init__(self, body: Callable[["Other"], None]) -> None:
        self.said: list[str] = []
        self.ready, self.go_on = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._run, args=(body,))
        self.thread.start()
        assert self.ready.wait(10)

    def _run(self, body: Callable[["Other"], None]) -> None:
        try:
            body(self)
        except (Late, Later) as error:
            self.said.append(type(error).__name__)

    def stand(self) -> None:
        """Until the test lets it go on, through many bytecodes."""
        self.ready.set()
        while not self.go_on.is_set():
            time.sleep(0.001)

    def send(self, *kinds: type[Exception]) -> None:
        assert self.thread.ident
        for kind in kinds:
            interrupts.raise_in(self.thread.ident, kind)

    def end(self) -> list[str]:
        self.go_on.set()
        self.thread.join(10)
        return self.said


def test_it_comes_at_the_end_of_the_outer_section_and_the_last_one_only() -> None:
    def body(other: Other) -> None:
        with interrupts.held_back():
            with interrupts.held_back():
                other.stand()
                other.said.append("inner")
            other.said.append("outer")
        other.said.append("behind")

    other = Other(body)
    other.send(Late, Later)
    assert other.end() == ["inner", "outer", "Later"]


def test_it_takes_the_place_of_what_the_section_raises() -> None:
    def body(other: Other) -> None:
        with interrupts.held_back():
            other.stand()
            raise ValueError

    other = Other(body)
    other.send(Late)
    assert other.end() == ["Late"]


def test_outside_it_comes_at_once() -> None:
    def body(other: Other) -> None:
        with interrupts.held_back():
            other.said.append("within")
        other.stand()

    other = Other(body)
    other.send(Late)
    other.thread.join(10)
    assert other.end() == ["within", "Late"]


def test_no_lock_stays_behind() -> None:
    """Sent at any moment to one that takes a lock and gives it back all the time."""
    lock = threading.Lock()

    def body(other: Other) -> None:
        other.ready.set()
        while True:
            with interrupts.held_back():
                lock.acquire()
                sum(range(20))
                lock.release()

    for n in range(300):
        other = Other(body)
        time.sleep(n % 7 * 1e-4)
        other.send(Late)
        assert other.end() == ["Late"]
        assert lock.acquire(blocking=False), n
        lock.release()
