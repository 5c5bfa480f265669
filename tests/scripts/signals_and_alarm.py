"""Handles signals of its own, an alarm among them."""

import os
import signal
import time

caught = []
signal.signal(signal.SIGUSR1, lambda number, frame: caught.append(signal.Signals(number).name))
before = signal.signal(signal.SIGTERM, lambda *_: caught.append("term"))
print(before == signal.SIG_DFL, signal.getsignal(signal.SIGINT) is signal.default_int_handler)
os.kill(os.getpid(), signal.SIGUSR1)
signal.raise_signal(signal.SIGTERM)
signal.signal(signal.SIGALRM, lambda *_: caught.append("alarm"))
signal.setitimer(signal.ITIMER_REAL, 0.05)
deadline = time.monotonic() + 5
while len(caught) < 3 and time.monotonic() < deadline:
    time.sleep(0.01)
print(sorted(caught))


class TooLong(Exception):
    pass


def ring(number, frame):
    raise TooLong("too long")


signal.signal(signal.SIGALRM, ring)
signal.alarm(1)
try:
    while True:
        time.sleep(0.01)
except TooLong as error:
    print(type(error).__name__, error)
