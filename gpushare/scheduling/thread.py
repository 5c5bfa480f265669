"""The scheduler thread: looks when something changed, asks the policy, publishes its permits.

It is never on the path of an iteration: permits lie ready in the shim, where doors read them.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from gpushare.native import doors, process, shim
from gpushare.native.permits import NEVER, NativePermit
from gpushare.scheduling import order as orders
from gpushare.scheduling.admission import Need, Queue, Queued, queues
from gpushare.scheduling.fewer import residents
from gpushare.scheduling.forecast import forecasts
from gpushare.scheduling.groups import Groups
from gpushare.scheduling.leases import segment_bytes
from gpushare.scheduling.needs import Needs
from gpushare.scheduling.order import Claimant, rank_in_queue
from gpushare.scheduling.pace import Pace
from gpushare.scheduling.policies import MODES, POLICIES, may_set_aside
from gpushare.scheduling.progress import Measured
from gpushare.scheduling.snapshot import (
    FEWER,
    GROUPS,
    TURNS,
    JobState,
    Permit,
    Snapshot,
    from_measured,
)
from gpushare.scheduling.trials import LOOK_S
from gpushare.scheduling.yields import Yields
from gpushare.units import format_bytes

# Of a core, for reading curves that have been refined and planning with them; all that the thread does is to stay
# below two hundredths.
_SHARE = 0.01
OS_NAME = "gpushare-sched"  # of the thread, as `top -H` shows it

Note = Callable[[str], None]


class SchedulerThread:
    """Plans for the jobs added to it. `add_job` and `remove_job` may be called from any thread.

    :param order: one of `jobs.ORDERS`.
    :param split_bytes: see `Snapshot`.
    :param note: tells the user something.
    """

    def __init__(self, *, policy: str, order: str, split_bytes: int | None, note: Note) -> None:
        self._order = order
        self._may_set_aside = may_set_aside(MODES.get(policy, ()), order)
        self._ranks: dict[int, int] = {}
        self._name, self._policy, self._modes = policy, POLICIES[policy], MODES.get(policy)
        self._note = note
        self._pace = Pace()
        self._queue = Queue(
            lambda: shim.pool_state().for_jobs_bytes, Needs(), at_once=lambda: self._pace.at_once
        )
        self._told: tuple[str, Groups] = (
            policy,
            (),
        )  # the mode that the user takes to be in force, and its groups
        self._jobs: dict[int, Claimant] = {}  # as they were added
        self._names: dict[int, str] = {}
        self._read_for: object = None
        self._read_s, self._cost_s = 0.0, 0.0
        self._cuts_given_up = 0
        self._versions: dict[int, int] = {}
        self._measured = Measured()
        self._snapshot = Snapshot(0, (), split_bytes=split_bytes)
        self._unplanned = False  # the permits of this snapshot could not be made
        self._cpu_s = 0.0
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gpushare-scheduler", daemon=True)

    def start(self) -> None:
        """Begin to plan."""
        doors.order_set(orders.NATIVE[self._order], round(orders.QUANTUM_S * 1e9))
        self._thread.start()

    def stop(self) -> None:
        """End the thread; permits that were given stay."""
        self._ending.set()
        self._thread.join(timeout=2)

    @property
    def cpu_s(self) -> float:
        """Processor time that the thread has taken."""
        return self._cpu_s

    @property
    def yields(self) -> Yields:
        """What each mode was measured to yield."""
        return self._pace.yields

    def add_job(
        self, account: int, name: str, *, priority: int = 0, total_iterations: int | None = None
    ) -> None:
        """Plan for this account from now on.

        :param name: of the job, for what the user is told.
        :param total_iterations: how many the job did when it last ran to its end.
        """
        with self._lock:
            self._names[account] = name
            self._jobs[account] = Claimant(account, priority, total_iterations, 0, None)

    def expect(self, jobs: int) -> None:
        """So many jobs will ask to be admitted; none that has to fit is before all have."""
        self._queue.expect(jobs)

    def admit(
        self,
        name: str,
        account: int,
        need: Need | None,
        *,
        priority: int,
        solo_s: float | None,
        note: Note,
        queued: Callable[[Queued], None],
        given_up: Callable[[], bool],
    ) -> bool:
        """Wait until the job may begin (`admission.Queue.enter`), and let it. False: it was given up first.

        :param solo_s: of the whole job alone, by its saved profile.
        """
        rank = rank_in_queue(self._order, priority, solo_s)
        need = need if queues(self._name) else None
        if not self._queue.enter(name, account, need, rank=rank, note=note, queued=queued, given_up=given_up):
            return False
        shim.job_admit(account)
        return True

    def why_no_cut(self, budget_bytes: int, *, force: bool) -> str | None:
        """Why the budget can't become smaller (`admission.Queue.why_no_cut`); None where it does not, or can."""
        if budget_bytes >= shim.pool_state().budget_bytes:
            return None
        return self._queue.why_no_cut(budget_bytes, Needs.are_known, force=force)

    def remove_job(self, account: int) -> None:
        """The job ended."""
        with self._lock:
            self._jobs.pop(account, None)

    def release(self, name: str) -> None:
        """A job that was admitted holds nothing any more, but what libraries keep of it."""
        self._queue.leave(name)

    def _run(self) -> None:
        process.name_thread(OS_NAME)
        seen, failure = 0, ""
        while not self._ending.is_set():
            before, seen = seen, doors.wait_change(seen, round(self._pace.look_again_s * 1e9))
            try:
                self._plan(news=seen != before)
            except Exception as error:  # whatever it is, jobs must not go on unplanned in silence
                self._unplanned, self._read_for, self._versions = True, None, {}
                if failure != (failure := f"{type(error).__name__}: {error}"):
                    self._note(_why_unplanned(failure))
                    traceback.print_exc()
                self._ending.wait(LOOK_S)
            self._cpu_s = time.thread_time()

    def _plan(self, *, news: bool) -> None:
        with self._lock:
            jobs = dict(self._jobs)
        accounts = tuple(jobs)
        progress = {account: p for account in accounts if (p := doors.progress(account))}
        self._publish_ranks(jobs.values(), progress)
        pool = shim.pool_state()
        if pool.cuts_given_up != self._cuts_given_up:
            self._cuts_given_up = pool.cuts_given_up
            self._note(_why_no_cut(pool))
        read_for = accounts, frozenset(progress), pool.budget_bytes
        begin_s = time.monotonic()
        changed = self._unplanned
        if read_for != self._read_for or self._is_due(begin_s, news):
            self._read_for = read_for
            changed = self._read(accounts, pool) or changed
        if self._modes:
            changed = self._choose_mode(self._modes, progress, len(jobs)) or changed
        if changed:
            permits = self._policy(self._snapshot)
            doors.split_set(segment_bytes(self._policy, self._snapshot, permits))
            doors.permits_set([native_permit(permit) for permit in permits])
            self._unplanned = False
            self._read_s = time.monotonic()
            self._cost_s = self._read_s - begin_s

    def _is_due(self, now_s: float, news: bool) -> bool:
        """Whether to look at refined curves; who comes or goes is looked at in any case."""
        return now_s - self._read_s >= max(0.0 if news else LOOK_S, self._cost_s / _SHARE)

    def _read(self, accounts: tuple[int, ...], pool: shim.PoolState) -> bool:
        """A new snapshot; whether there is anything new in it."""
        curves = {account: doors.curve_get(account) for account in accounts}
        versions = {account: curve.version for account, curve in curves.items() if curve}
        before, self._versions = self._versions, versions
        known = tuple(job.account for job in self._snapshot.jobs)
        if (versions, accounts, pool.budget_bytes) == (before, known, self._snapshot.budget_bytes):
            self._read_s = time.monotonic()
            return False
        jobs = tuple(
            JobState(account, from_measured(curve) if curve else None) for account, curve in curves.items()
        )
        reserved_bytes = pool.headroom_bytes + pool.shared_bytes
        self._snapshot = replace(
            self._snapshot, budget_bytes=pool.budget_bytes, jobs=jobs, reserved_bytes=reserved_bytes
        )
        return True

    def _publish_ranks(self, jobs: Collection[Claimant], progress: dict[int, doors.Progress]) -> None:
        now = [
            replace(job, iterations=p.iterations, solo_s=p.solo_ns / 1e9)
            if (p := progress.get(job.account))
            else job
            for job in jobs
        ]
        for account, rank in orders.ranks(self._order, now).items():
            if self._ranks.get(account) != rank:
                self._ranks[account] = rank
                doors.rank_set(account, rank)

    def _choose_mode(self, modes: tuple[str, ...], progress: dict[int, doors.Progress], begun: int) -> bool:
        """Whether another mode is in force."""
        jobs = {account: self._measured.of(account, told) for account, told in progress.items()}
        mode = self._pace.look(
            time.monotonic(),
            jobs,
            lambda counted, of=None: forecasts(self._snapshot.of(counted), of or modes),
            residents=residents(self._snapshot.jobs, self._ranks) if self._may_set_aside else (),
            copied_out=doors.copied_out() if self._may_set_aside else (),
            begun=begun,
        )
        groups, aside = self._pace.groups, self._pace.aside
        if self._pace.settled and (mode, groups) != self._told:
            named = [sorted(self._names.get(account, "") for account in group) for group in groups]
            count = sum(job.iterations > 0 for job in jobs.values())
            there = count - len(aside), count
            self._note(_what_changed(self._pace.yields, named, there))
            self._told = mode or self._name, groups
        before = self._snapshot
        if (mode, groups, aside) == (before.mode, before.groups, before.aside):
            return False
        self._snapshot = replace(before, mode=mode, groups=groups, aside=aside)
        if aside != before.aside:
            doors.aside_set(aside)
        return True


def native_permit(permit: Permit) -> NativePermit:
    """As the shim has it."""
    made = NEVER if permit.allocations is None else permit.allocations
    shift_ns = round(permit.shift_s * 1e9)
    return NativePermit(permit.account, permit.after, made, shift_ns, permit.by_forecast)


def _what_changed(yields: Yields, groups: Sequence[Sequence[str]], there: tuple[int, int]) -> str:
    """The mode in force, with the names of jobs in its groups, and what was measured of the others.

    :param there: how many jobs are not set aside, of how many.
    """
    measured = {name: m.efficiency for name, m in yields.modes.items() if m.efficiency is not None}
    here = measured.pop(yields.mode or "", 0.0)
    how = "take turns" if yields.mode == TURNS else f"run side by side by {yields.mode}"
    if groups:
        how = f"run side by side, but {'; '.join(' and '.join(names) for names in groups)} in turns"
    if there[0] < there[1]:
        how = f"run side by side, {there[0]} of {there[1]} at a time, the others set aside"
    words = {TURNS: "in turns", GROUPS: "some in turns", FEWER: "fewer at once"}
    others = [f"{words.get(name, name)} {measured[name]:.2f}" for name in measured]
    beside = f" ({', '.join(others)})" if others else ""
    return f"the jobs {how}: efficiency {here:.2f}, where one after the other has 1{beside}"


def _why_no_cut(pool: shim.PoolState) -> str:
    return (
        f"the budget stays {format_bytes(pool.budget_bytes)}: before the smaller one that was asked for could be, jobs "
        f"have come to need {format_bytes(pool.cut_needs_bytes)}"
    )


def _why_unplanned(failure: str) -> str:
    return (
        f"a plan failed, which is a bug of gpushare ({failure}): doors go by the permits that lie ready, so that jobs "
        "may be slower, but stay within the budget; its traceback is in host.log"
    )
