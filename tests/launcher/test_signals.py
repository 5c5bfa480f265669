"""Signals while the launcher waits for the host."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from gpushare.launcher.signals import Signals


class Host:
    """What the launcher tells, by its number, is there to be read."""

    def __init__(self) -> None:
        self.reading, self._writing = os.pipe()

    def send(self, message: dict[str, Any]) -> None:
        os.write(self._writing, bytes([message["number"]]))

    def stop(self) -> None:
        """With Ctrl-Z."""

    def go_on(self) -> None:
        self.send({"number": 1})


@pytest.mark.parametrize("count", [1, 3])
def test_one_that_another_thread_got_is_handled_while_we_wait(count: int) -> None:
    host = Host()
    signals = Signals(list, print)
    give_up = threading.Timer(10, host.send, [{"number": 0}])
    give_up.start()

    def get() -> None:
        for _ in range(count):
            signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)

    with signals:
        signals.reach(host)
        threading.Timer(0.2, get).start()
        signals.until_readable(host.reading)
    give_up.cancel()
    assert set(os.read(host.reading, 10)) == {signal.SIGUSR1}


@pytest.mark.parametrize("waiting", [True, False])
def test_while_ctrl_z_stops_the_run_the_view_is_aside(waiting: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[object] = []

    @contextlib.contextmanager
    def aside() -> Iterator[None]:
        happened.append("aside")
        yield
        happened.append("back")

    monkeypatch.setattr("gpushare.launcher.signals.os.kill", lambda _, number: happened.append(number))
    host = Host()
    with Signals(list, print, aside) as signals:
        signals.reach(host)
        main = threading.get_ident()

        def send() -> None:
            while signals._waiting != waiting:
                time.sleep(0.001)
            signal.pthread_kill(main, signal.SIGTSTP)

        stop = threading.Thread(target=send)
        stop.start()
        if not waiting:
            stop.join()  # the main thread is in the middle of something
        signals.until_readable(host.reading)
    assert happened == (["aside", signal.SIGSTOP, "back"] if waiting else [signal.SIGSTOP])


def test_what_was_set_before_is_set_again() -> None:
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)}
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        signal.set_wakeup_fd(writing)
        with Signals(list, print):
            assert signal.getsignal(signal.SIGUSR1) not in (signal.SIG_DFL, signal.SIG_IGN)
        assert signal.set_wakeup_fd(-1) == writing
    finally:
        signal.set_wakeup_fd(-1)
        os.close(reading)
        os.close(writing)
    assert {n: signal.getsignal(n) for n in before} == before
