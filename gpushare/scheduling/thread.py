"""The scheduler thread: looks when something changed, asks the policy, publishes its permits.

It is never on the path of an iteration: permits lie ready in the shim, where doors read them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from gpushare.jobs import PRIORITY
from gpushare.native import shim, usage
from gpushare.scheduling import order as orders
from gpushare.scheduling.admission import Need, Queue
from gpushare.scheduling.order import Claimant
from gpushare.scheduling.pace import Pace, Progress, Yields
from gpushare.scheduling.policies import POLICIES, SHARING
from gpushare.scheduling.snapshot import IterationCurve, JobState, Permit, Snapshot, compress

_LOOK_EVERY_NS = 500_000_000

Note = Callable[[str], None]


class SchedulerThread:
    """Plans for the jobs added to it. `add_job` and `remove_job` may be called from any thread.

    :param order: one of `jobs.ORDERS`.
    :param note: tells the user something.
    """

    def __init__(self, *, policy: str, order: str, note: Note) -> None:
        self._order = order
        self._ranks: dict[int, int] = {}
        self._queue = Queue(_room_bytes, _measured)
        self._policy, self._shares = POLICIES[policy], policy in SHARING
        self._note = note
        self._pace = Pace()
        self._told = False
        self._jobs: dict[int, Claimant] = {}  # as they were added
        self._looked_at: tuple[dict[int, int], bool, int] | None = None
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gpushare-scheduler", daemon=True)

    def start(self) -> None:
        """Begin to plan."""
        shim.order_set(orders.NATIVE[self._order], round(orders.QUANTUM_S * 1e9))
        self._thread.start()

    def stop(self) -> None:
        """End the thread; permits that were given stay."""
        self._ending.set()
        self._thread.join(timeout=2)

    @property
    def yields(self) -> Yields:
        """What running side by side and taking turns were measured to yield."""
        return self._pace.yields

    def add_job(self, account: int, *, priority: int = 0, total_iterations: int | None = None) -> None:
        """Plan for this account from now on.

        :param total_iterations: how many the job did when it last ran to its end.
        """
        with self._lock:
            self._jobs[account] = Claimant(account, priority, total_iterations, 0, None)

    def admit(
        self,
        name: str,
        account: int,
        need: Need | None,
        *,
        priority: int,
        note: Note,
        given_up: Callable[[], bool],
    ) -> bool:
        """Wait until the job may begin (`admission.Queue.enter`), and let it. False: it was given up first."""
        rank = -priority if self._order == PRIORITY else 0
        if not self._queue.enter(name, account, need, rank=rank, note=note, given_up=given_up):
            return False
        shim.job_admit(account)
        return True

    def remove_job(self, account: int) -> None:
        """The job ended."""
        with self._lock:
            del self._jobs[account]

    def release(self, name: str) -> None:
        """A job that was admitted holds nothing any more, but what libraries keep of it."""
        self._queue.leave(name)

    def _run(self) -> None:
        seen = 0
        while not self._ending.is_set():
            seen = shim.wait_change(seen, _LOOK_EVERY_NS)
            self._plan()

    def _plan(self) -> None:
        with self._lock:
            jobs_now = dict(self._jobs)
        accounts = tuple(jobs_now)
        self._publish_ranks(jobs_now.values())
        curves = {account: shim.curve_get(account) for account in accounts}
        versions = {account: curve.version for account, curve in curves.items() if curve}
        take_turns = self._shares and self._look_at_pace(accounts)
        pool = shim.pool_state()
        looked_at = versions, take_turns, pool.budget_bytes
        if looked_at == self._looked_at:
            return
        self._looked_at = looked_at
        jobs = tuple(JobState(account, _curve(curve)) for account, curve in curves.items())
        reserved_bytes = pool.headroom_bytes + pool.shared_bytes
        for permit in self._policy(Snapshot(pool.budget_bytes, jobs, reserved_bytes, take_turns)):
            shim.permit_set(permit.account, permit.after, native_ordinal(permit), round(permit.shift_s * 1e9))

    def _publish_ranks(self, jobs: Collection[Claimant]) -> None:
        if orders.NATIVE[self._order] != "ranked":
            return
        now = []
        for job in jobs:
            found = shim.progress(job.account)
            now.append(
                replace(job, iterations=found.iterations, solo_s=found.solo_ns / 1e9) if found else job
            )
        for account, rank in orders.ranks(self._order, now).items():
            if self._ranks.get(account) != rank:
                self._ranks[account] = rank
                shim.rank_set(account, rank)

    def _look_at_pace(self, accounts: Sequence[int]) -> bool:
        found = {account: shim.progress(account) for account in accounts}
        jobs = {account: Progress(p.iterations, p.solo_ns / 1e9) for account, p in found.items() if p}
        take_turns = self._pace.look(time.monotonic(), jobs)
        if len(jobs) < 2:
            self._told = False
        elif not self._pace.on_trial and take_turns != self._told:
            self._told = take_turns
            self._note(_what_changed(take_turns, self._pace.yields))
        return take_turns


def native_ordinal(permit: Permit) -> int:
    """A permit's ordinal as the shim has it."""
    if permit.by_forecast:
        return shim.BY_FORECAST
    return shim.NEVER if permit.ordinal is None else permit.ordinal


def _what_changed(take_turns: bool, yields: Yields) -> str:
    if not take_turns:
        return "the jobs run side by side again"
    return (
        f"the jobs take turns: side by side they ran at {yields.sharing:.2f} times the pace of one after the "
        f"other, in turns at {yields.turns:.2f}"
    )


def _curve(curve: shim.NativeCurve | None) -> IterationCurve | None:
    if curve is None:
        return None
    return compress(curve.held_bytes, [t / 1e9 for t in curve.time_ns], curve.residue_bytes)


def _room_bytes() -> int:
    """Of the budget, for jobs."""
    pool = shim.pool_state()
    return pool.budget_bytes - pool.headroom_bytes - pool.shared_bytes


def _measured(account: int) -> Need:
    curve = shim.curve_get(account)
    if curve is None:
        held_bytes = usage.memory(account).held_bytes
        return Need(held_bytes, held_bytes)
    return Need(curve.residue_bytes, max(curve.held_bytes))
