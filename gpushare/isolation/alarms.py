"""A job's interval timer, as `signal.setitimer(ITIMER_REAL)` and `signal.alarm` have it for a process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from gpushare.isolation import context, interrupts

Times = tuple[float, float]  # seconds until it rings, seconds from one ring to the next; 0: not at all


class Alarm:
    """Rings in a thread of the host's. To be called from any thread.

    As signals of a kind do not queue, what is due while a ring has not returned is one more ring: a handler may wait
    for memory, and while the job's memory is copied out none can start.
    """

    def __init__(self) -> None:
        self._lock = interrupts.whole(threading.Lock())  # a handler may set the alarm anew
        self._timer: threading.Timer | None = None
        self._due_s = self._interval_s = 0.0

    def arm(self, seconds: float, interval_s: float, ring: Callable[[], object]) -> Times:
        """Ring then, and every so often after it; not at all if `seconds` is 0. What it was set to before."""
        with self._lock:
            before = self._left()
            if self._timer:
                self._timer.cancel()
            self._timer, self._interval_s = None, interval_s
            if seconds > 0:
                self._start(time.monotonic() + seconds, ring)
        return before

    def left(self) -> Times:
        """What it is set to."""
        with self._lock:
            return self._left()

    def _left(self) -> Times:
        if self._timer is None or not self._timer.is_alive():
            return 0.0, 0.0
        left_s = self._due_s - time.monotonic()
        if left_s < 0:  # it rings
            left_s = left_s % self._interval_s if self._interval_s else 0.0
        return left_s, self._interval_s

    def _start(self, due_s: float, ring: Callable[[], object]) -> None:
        def rings() -> None:
            try:
                ring()
            finally:
                with self._lock:
                    if self._timer is timer and self._interval_s > 0:  # nobody has set it anew
                        self._start(max(due_s + self._interval_s, time.monotonic()), ring)

        timer = threading.Timer(max(0.0, due_s - time.monotonic()), rings)
        timer.daemon = True
        self._timer, self._due_s = timer, due_s
        before = context.current()
        context.bind(None)  # not one of the script's threads
        try:
            timer.start()
        finally:
            context.bind(before)
