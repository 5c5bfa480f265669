"""Signals that reach gpushare while jobs run: each job gets them, as each script would by itself.

Ctrl-C ends what is left 30 s later, or the second time. What sends SIGTERM (a batch system, a container) has a patience
of its own, and scripts that handle it save their work meanwhile: nothing is ended here. (Who has no handler is ended by
the host.)
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import FrameType
from typing import Any, Self

from gpushare.launcher.host_process import HostProcess

NAME_AFTER_S = 5.0
KILL_AFTER_S = 30.0
SAME_S = 0.5  # a wrapper (`timeout`, a shell) passes on what the terminal sends to all

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PASSED_ON = (*_ENDING, signal.SIGUSR1, signal.SIGUSR2)


class Signals:
    """Watches them while it is entered. Main thread only; those that were ignored before are left alone.

    :param running: names of the jobs that have not ended.
    :param note: shows a line.
    :param aside: entered while Ctrl-Z stops the run: the terminal is the shell's then.
    """

    def __init__(
        self,
        running: Callable[[], list[str]],
        note: Callable[[str], object],
        aside: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self.ended_by: int | None = None  # the first one that asked the jobs to end
        self.stopped_s = 0.0  # by Ctrl-Z, in all
        self._running, self._note, self._aside = running, note, aside
        self._waiting = False  # in `until_readable`: the main thread is in the middle of nothing
        self._host: HostProcess | None = None
        self._interrupted_s: float | None = None  # when Ctrl-C came first
        self._before: dict[int, Any] = {}
        self._timers: list[threading.Timer] = []
        self._came = self._coming = self._told_before = -1

    def __enter__(self) -> Self:
        self._came, self._coming = os.pipe()
        os.set_blocking(self._came, False)
        os.set_blocking(self._coming, False)
        self._told_before = signal.set_wakeup_fd(self._coming, warn_on_full_buffer=False)
        handlers = {**dict.fromkeys(_PASSED_ON, self._on_signal), signal.SIGTSTP: self._on_stop}
        for number, handler in handlers.items():
            before = signal.getsignal(number)
            if before is not signal.SIG_IGN:  # as nohup and shell scripts do it, and python leaves it
                self._before[number] = before
                signal.signal(number, handler)
        return self

    def __exit__(self, *_: object) -> None:
        for timer in self._timers:
            timer.cancel()
        for number, before in self._before.items():
            signal.signal(number, before)
        signal.set_wakeup_fd(self._told_before)
        os.close(self._came)
        os.close(self._coming)

    def until_readable(self, descriptor: int) -> None:
        """Wait until there is something to read, or its writer is gone; signals are handled meanwhile.

        Any thread can get a signal, but Python handles it in the main one, and nobody wakes that: a Ctrl-C that reaches
        the thread that prints was not seen before the host said something.
        """
        wanted = select.poll()
        wanted.register(descriptor, select.POLLIN)
        wanted.register(self._came, select.POLLIN)
        self._waiting = True
        try:
            while descriptor not in (ready := {file for file, _ in wanted.poll()}):
                if self._came in ready:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._came, 512)  # their numbers
        finally:
            self._waiting = False

    def reach(self, host: HostProcess) -> None:
        """From now on they go to this host. Before, they end gpushare."""
        self._host = host

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        host = self._host
        if host is None and number == signal.SIGINT:
            raise KeyboardInterrupt
        if host is None:
            raise SystemExit(128 + number)
        if number == signal.SIGINT and self._interrupted_s is not None:
            if time.monotonic() - self._interrupted_s >= SAME_S:
                host.kill()
            return
        if number == signal.SIGINT:
            self._interrupted_s = time.monotonic()
        host.send({"op": "signal", "number": number})
        if number in _ENDING:
            self.ended_by = self.ended_by or number
            self._begin_waiting(host, number)

    def _on_stop(self, _number: int, _frame: FrameType | None) -> None:
        """Ctrl-Z: the host is in a session of its own, which the terminal does not stop."""
        host = self._host
        if host:
            host.stop()
        # Who is stopped while it prints holds a lock that another thread may wait for with the picture's in its hands.
        with self._aside() if self._waiting else nullcontext():
            began = time.monotonic()
            os.kill(os.getpid(), signal.SIGSTOP)  # until `fg` or `bg`
            self.stopped_s += time.monotonic() - began
        if host:
            host.go_on()

    def _begin_waiting(self, host: HostProcess, number: int) -> None:
        self._time(NAME_AFTER_S, lambda: self._name_running(number))
        if number == signal.SIGINT:
            self._time(KILL_AFTER_S, host.kill)

    def _time(self, seconds: float, call: Callable[[], object]) -> None:
        timer = threading.Timer(seconds, call)
        timer.daemon = True
        self._timers.append(timer)
        timer.start()

    def _name_running(self, number: int) -> None:
        names = ", ".join(self._running())
        if not names:
            return  # the host is about to end
        if number == signal.SIGINT:
            since, then = "Ctrl-C", f"they are ended {KILL_AFTER_S:.0f} s after it, or by a second Ctrl-C"
        else:
            since, then = signal.Signals(number).name, "they handle it themselves, and end when they do"
        self._note(f"still running {NAME_AFTER_S:.0f} s after {since}: {names}; {then}")
