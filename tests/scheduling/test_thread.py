"""The scheduler's thread where a plan fails."""

import threading

import pytest

from gpushare.native import doors, shim
from gpushare.native.permits import NEVER, NativePermit
from gpushare.scheduling import thread
from gpushare.scheduling.policies.greedy import greedy
from gpushare.scheduling.snapshot import Permit, Snapshot
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


class Shim:
    """What the thread asks the shim and tells it, for two jobs whose curves never change."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.permits: list[list[NativePermit]] = []
        pool = shim.PoolState(0, 0, 0, 10_000, 0, 0, 0)
        curve = doors.NativeCurve([600, 0], [0, 10**8], 0, 2 * 10**8, 1)
        for name, answer in {
            "wait_change": lambda seen, timeout_ns: seen,
            "order_set": lambda order, quantum_ns: None,
            "rank_set": lambda account, rank: None,
            "split_set": lambda size: None,
            "progress": lambda account: None,
            "copied_out": list,
            "curve_get": lambda account: curve,
            "permits_set": self.permits.append,
        }.items():
            monkeypatch.setattr(doors, name, answer)
        monkeypatch.setattr(shim, "pool_state", lambda: pool)


def test_what_a_failed_plan_was_for_is_planned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    told, given = Shim(monkeypatch), threading.Event()
    monkeypatch.setattr(thread, "LOOK_S", 0.01)
    failures = [ValueError("once"), ValueError("twice")]

    def policy(snapshot: Snapshot) -> list[Permit]:
        if len(snapshot.jobs) == 2:
            if failures:
                raise failures.pop()
            given.set()
        return greedy(snapshot)

    monkeypatch.setitem(thread.POLICIES, "greedy", policy)
    scheduler = SchedulerThread(policy="greedy", order="fifo", split_bytes=None, note=lambda text: None)
    scheduler.add_job(1, "a")
    scheduler.add_job(2, "b")
    scheduler.start()
    assert given.wait(10)
    scheduler.stop()
    assert not failures
    assert {(p.job, p.after) for p in told.permits[-1]} == {(1, 2), (2, 1)}


def test_jobs_that_slow_only_each_other_down_are_told_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs a and c do, by twice their solo time; b feels nobody."""
    told, notes, solo_s, now_s = Shim(monkeypatch), [], 0.1, 1000.0
    done = dict.fromkeys((1, 2, 3), 1.0)
    monkeypatch.setattr(thread.time, "monotonic", lambda: now_s)
    monkeypatch.setattr(
        doors, "progress", lambda account: doors.Progress(done[account], 10**8, done[account] - 1)
    )
    scheduler = SchedulerThread(policy="auto", order="fifo", split_bytes=None, note=notes.append)
    for account, name in enumerate("abc", 1):
        scheduler.add_job(account, name)
    never: set[tuple[int, int]] = set()
    while now_s < 1060 or scheduler._pace.on_trial:
        scheduler._plan(news=False)
        never = {(p.job, p.after) for p in told.permits[-1] if p.made == NEVER}
        rate = 1 / 2 if (1, 3) in never else 1 / 3
        now_s += scheduler._pace.look_again_s
        for account in done:
            done[account] += (1.0 if account == 2 else rate) * scheduler._pace.look_again_s / solo_s
    assert never == {(1, 3), (3, 1)}
    assert any("side by side, but a and c in turns" in note for note in notes)
