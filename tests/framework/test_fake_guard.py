"""The stand-in for a GPU's device guard is made by a thread that outlasts all jobs."""

import threading

import pytest

from gpushare.framework import fake_guard


def test_one_thread_that_stays_asks_once() -> None:
    askers: list[threading.Thread] = []
    ask = fake_guard.AskedOnce(lambda: askers.append(threading.current_thread()))
    callers = [threading.Thread(target=ask) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    ask()
    assert len(askers) == 1 and askers[0].is_alive() and askers[0] not in callers


def test_who_could_start_no_thread_is_told_and_the_next_one_tries_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[bool] = []
    ask = fake_guard.AskedOnce(lambda: asked.append(True))
    with monkeypatch.context() as no_threads:

        def fail(_: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        no_threads.setattr(threading.Thread, "start", fail)
        with pytest.raises(RuntimeError, match="can't start"):
            ask()
    ask()
    assert asked == [True]
