"""The scheduler's thread where a plan fails."""

import threading

import pytest

from gpushare.native import doors
from gpushare.scheduling import thread
from gpushare.scheduling.thread import SchedulerThread


def test_a_plan_that_fails_is_told_once_and_the_next_one_is_made(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    failures = ["no curve", "no curve", "other", None]
    planned = threading.Event()
    notes: list[str] = []

    def plan(self: SchedulerThread, *, news: bool) -> None:
        failure = failures.pop(0) if len(failures) > 1 else None
        if failure:
            raise ValueError(failure)
        planned.set()

    monkeypatch.setattr(SchedulerThread, "_plan", plan)
    monkeypatch.setattr(thread, "LOOK_S", 0.01)
    monkeypatch.setattr(doors, "wait_change", lambda seen, timeout_ns: seen + 1)
    monkeypatch.setattr(doors, "order_set", lambda order, quantum_ns: None)
    scheduler = SchedulerThread(policy="zico", order="fifo", split_bytes=None, note=notes.append)
    scheduler.start()
    assert planned.wait(10)
    scheduler.stop()
    assert [("no curve" in note, "other" in note) for note in notes] == [(True, False), (False, True)]
    assert "a bug of gpushare" in notes[0] and capfd.readouterr().err.count("ValueError: no curve") == 1
