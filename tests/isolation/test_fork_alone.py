"""A fork with the other jobs parked, and what is left of that when it is interrupted."""

import io
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest

from gpushare.isolation import context, fork, imports
from gpushare.native import library, shim

library.load()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    made: list[str] = []
    monkeypatch.setattr(shim, "unpark_others", lambda account: made.append(f"unpark {account}"))
    monkeypatch.setattr(shim, "awaiting_fork", lambda account: nullcontext())
    streams = io.StringIO(), io.StringIO(), io.StringIO()
    context.bind(
        context.JobContext("forks", 3, [], [], types.ModuleType("__main__"), *streams, {}, made.append)
    )
    yield made
    context.bind(None)


def can_import_elsewhere() -> bool:
    return is_free_elsewhere(imports._importing)


def can_start_elsewhere() -> bool:
    return is_free_elsewhere(fork._starting)


def is_free_elsewhere(lock: Any) -> bool:
    found = []

    def try_to() -> None:
        found.append(lock.acquire(timeout=0.1))
        if found[0]:
            lock.release()

    thread = threading.Thread(target=try_to)
    thread.start()
    thread.join()
    return found == [True]


def test_what_a_handler_raises_while_the_others_are_parked_lets_them_go_on(
    calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(account: int, timeout_ns: int) -> bool:
        calls.append(f"park {account}")
        raise TimeoutError

    monkeypatch.setattr(shim, "park_others", interrupted)
    with pytest.raises(TimeoutError):
        fork.guarded(lambda: 7, int)()
    assert calls == ["park 3", "unpark 3"]
    assert can_import_elsewhere()


def test_what_the_fork_raises_lets_them_go_on_too(calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shim, "park_others", lambda account, timeout_ns: True)

    def fails() -> int:
        raise BlockingIOError

    with pytest.raises(BlockingIOError):
        fork.guarded(fails, int)()
    assert calls == ["unpark 3"] and can_import_elsewhere()


def test_who_waits_for_the_lock_is_as_if_parked(calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def awaiting(account: int) -> Iterator[None]:
        held = not can_import_elsewhere()
        assert held == bool(calls) and can_start_elsewhere()
        calls.append(f"awaits {account}")
        yield
        assert not can_import_elsewhere() and can_start_elsewhere() is not held
        calls.append("no longer")

    def park(account: int, timeout_ns: int) -> bool:
        calls.append(f"park {account}")
        return True

    monkeypatch.setattr(shim, "awaiting_fork", awaiting)
    monkeypatch.setattr(shim, "park_others", park)
    assert fork.guarded(lambda: 7, int)() == 7
    assert calls == ["awaits 3", "no longer", "awaits 3", "no longer", "park 3", "unpark 3"]


def test_a_process_is_launched_with_no_other_fork_in_it(
    calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shim, "park_others", lambda account, timeout_ns: True)
    free: list[bool] = []

    def launch(fails: bool) -> None:
        free.append(can_import_elsewhere() or can_start_elsewhere())
        fork.guarded(lambda: 7, int)()
        free.append(can_import_elsewhere() or can_start_elsewhere())
        if fails:
            raise BlockingIOError

    fork.launched_alone(launch)(False)
    with pytest.raises(BlockingIOError):
        fork.launched_alone(launch)(True)
    assert free == [False] * 4 and can_import_elsewhere() and can_start_elsewhere()


@pytest.mark.parametrize("preexec", [None, print])
def test_a_program_is_started_with_no_fork_in_it(
    calls: list[str], preexec: Callable[[], None] | None
) -> None:
    free: list[tuple[bool, bool]] = []

    def start(self: object, *args: object, fails: bool = False, preexec_fn: object = None) -> None:
        free.append((can_import_elsewhere(), can_start_elsewhere()))
        if fails:
            raise FileNotFoundError

    begin = fork.started_alone(start)
    begin(None, "ls", preexec_fn=preexec)
    begin(None, "ls", -1, None, None, None, None, preexec)
    with pytest.raises(FileNotFoundError):
        begin(None, "ls", preexec_fn=preexec, fails=True)
    assert (
        free == [(preexec is None, False)] * 3
    )  # what runs before the program is a fork, which waits for imports
    assert can_import_elsewhere() and can_start_elsewhere()


def test_an_interrupt_while_it_waits_leaves_nothing_locked(
    calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def interrupted(account: int) -> Iterator[None]:
        yield
        raise KeyboardInterrupt

    monkeypatch.setattr(shim, "awaiting_fork", interrupted)
    for start in (fork.started_alone(lambda self: None), fork.launched_alone(lambda self: None)):
        with pytest.raises(KeyboardInterrupt):
            start(None)
        assert can_import_elsewhere() and can_start_elsewhere()


def test_a_process_is_told_of_however_it_starts(calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """So what it takes is counted as work of its own (`shim/src/iteration_kinds.h`)."""

    monkeypatch.setattr(shim, "tell_of_process", lambda account: calls.append(f"tell {account}"))
    process = types.SimpleNamespace(start=fork.told(lambda self: calls.append("start")))
    process.start(process)
    context.bind(None)
    process.start(process)
    assert calls == ["tell 3", "start", "start"]


def test_the_child_lets_nobody_go_on(calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shim, "park_others", lambda account, timeout_ns: False)
    assert fork.guarded(lambda: 0, int)() == 0
    assert len(calls) == 1 and "allocated nothing for 5 s" in calls[0]  # told of, and no unpark
    imports._importing.release()
