"""What can't be done about signals: wrong numbers, wrong threads, wrong times."""

import os
import signal
import threading


def told(call, *args):
    try:
        print(args, call(*args))
    except (OSError, TypeError, ValueError) as error:
        print(args, type(error).__name__, error)


def all_of_them():
    for number, handler in (
        (10, signal.SIG_IGN),
        (0, signal.SIG_IGN),
        (99, 3),
        ("x", 3),
        (9, print),
        (10, 3),
    ):
        told(signal.signal, number, handler)
    told(signal.set_wakeup_fd, -1)
    for seconds in ("x", -1, 1.5, 0):
        told(signal.alarm, seconds)
    for timer in (
        (0, -1),
        (7, 1),
        (0, "x"),
        (1, "x"),
        (0, 1, None),
        (0, float("nan")),
        (0, 1e300),
        (0, 1, -1),
        (0, 0),
    ):
        told(signal.setitimer, *timer)
    told(signal.getitimer, 9)
    for number in (99, "x"):
        told(signal.getsignal, number)
    told(signal.raise_signal, 99)
    told(lambda: os.kill(os.getpid(), 99))
    told(lambda: os.killpg(0, 99))
    told(lambda: signal.pthread_kill(threading.get_ident(), 99))


all_of_them()
thread = threading.Thread(target=all_of_them)
thread.start()
thread.join()
