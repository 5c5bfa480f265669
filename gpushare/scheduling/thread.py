"""The scheduler thread: looks when something changed, asks the policy, publishes its permits.

It is never on the path of an iteration: permits lie ready in the shim, where doors read them.
"""

from __future__ import annotations

import threading

from gpushare import native
from gpushare.scheduling.policies import POLICIES
from gpushare.scheduling.snapshot import IterationCurve, JobState, Snapshot, compress

_LOOK_EVERY_NS = 500_000_000


class SchedulerThread:
    """Plans for the jobs added to it. `add_job` and `remove_job` may be called from any thread."""

    def __init__(self, *, policy: str, budget_bytes: int) -> None:
        self._policy = POLICIES[policy]
        self._budget_bytes = budget_bytes
        self._accounts: list[int] = []
        self._versions: dict[int, int] = {}
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gpushare-scheduler", daemon=True)

    def start(self) -> None:
        """Begin to plan."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; permits that were given stay."""
        self._ending.set()
        self._thread.join(timeout=2)

    def add_job(self, account: int) -> None:
        """Plan for this account from now on."""
        with self._lock:
            self._accounts.append(account)

    def remove_job(self, account: int) -> None:
        """The job ended."""
        with self._lock:
            self._accounts.remove(account)

    def _run(self) -> None:
        seen = 0
        while not self._ending.is_set():
            seen = native.wait_change(seen, _LOOK_EVERY_NS)
            self._plan()

    def _plan(self) -> None:
        with self._lock:
            accounts = tuple(self._accounts)
        curves = {account: native.curve_get(account) for account in accounts}
        versions = {account: curve.version for account, curve in curves.items() if curve}
        if versions == self._versions:
            return
        self._versions = versions
        jobs = tuple(JobState(account, _curve(curve)) for account, curve in curves.items())
        pool = native.pool_state()
        reserved_bytes = pool.headroom_bytes + pool.shared_bytes
        for permit in self._policy(Snapshot(self._budget_bytes, jobs, reserved_bytes)):
            ordinal = native.NEVER if permit.ordinal is None else permit.ordinal
            native.permit_set(permit.account, permit.after, ordinal, round(permit.shift_s * 1e9))


def _curve(curve: native.NativeCurve | None) -> IterationCurve | None:
    if curve is None:
        return None
    return compress(curve.held_bytes, [t / 1e9 for t in curve.time_ns], curve.residue_bytes)
