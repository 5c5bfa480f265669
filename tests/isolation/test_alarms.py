"""A job's interval timer."""

import threading
import time

import pytest

from gpushare.isolation.alarms import Alarm


class Bell:
    """Counts rings, which last while it is `held`."""

    def __init__(self) -> None:
        self.alarm, self.rings, self.rang = Alarm(), 0, threading.Event()
        self.free = threading.Event()
        self.free.set()

    def __call__(self) -> None:
        self.rings += 1
        self.rang.set()
        self.free.wait(10)

    def wait_for(self, rings: int) -> None:
        deadline = time.monotonic() + 10
        while self.rings < rings and time.monotonic() < deadline:
            time.sleep(0.001)
        assert self.rings >= rings


@pytest.fixture
def bell() -> Bell:
    return Bell()


def test_it_rings_once(bell: Bell) -> None:
    assert bell.alarm.arm(0.01, 0, bell) == (0.0, 0.0)
    bell.wait_for(1)
    time.sleep(0.05)
    assert bell.rings == 1 and bell.alarm.left() == (0.0, 0.0)


def test_it_rings_again_and_again_until_it_is_set_anew(bell: Bell) -> None:
    bell.alarm.arm(0.01, 0.002, bell)
    bell.wait_for(4)
    left_s, interval_s = bell.alarm.arm(100, 0, bell)
    assert 0 <= left_s <= 0.002 and interval_s == 0.002
    time.sleep(0.02)  # one may have been on its way
    rings = bell.rings
    time.sleep(0.03)
    assert bell.rings == rings
    left_s, interval_s = bell.alarm.arm(0, 0, bell)
    assert 90 < left_s <= 100 and interval_s == 0
    assert bell.alarm.left() == (0.0, 0.0)


def test_what_is_due_while_it_rings_is_one_ring(bell: Bell) -> None:
    others = set(threading.enumerate())
    bell.free.clear()
    bell.alarm.arm(0.001, 0.001, bell)
    assert bell.rang.wait(10)
    time.sleep(0.1)
    assert bell.rings == 1 and len({*threading.enumerate()} - others) == 1
    left_s, interval_s = bell.alarm.left()
    assert 0 <= left_s <= 0.001 == interval_s
    bell.free.set()
    bell.wait_for(2)
    bell.alarm.arm(0, 0, bell)


def test_it_may_be_set_while_it_rings(bell: Bell) -> None:
    bell.free.clear()
    bell.alarm.arm(0.001, 0.001, bell)
    assert bell.rang.wait(10)
    bell.alarm.arm(100, 0, bell)
    bell.free.set()
    time.sleep(0.05)
    assert bell.rings == 1 and bell.alarm.left()[0] > 90
    bell.alarm.arm(0, 0, bell)
