"""The scheduler thread's work in virtual time: snapshots, the policy, its permits, and whether jobs take turns."""

from __future__ import annotations

from collections.abc import Sequence

from gpushare.native.simulation import SimulatedGovernor
from gpushare.scheduling.pace import Pace, Progress
from gpushare.scheduling.policies import Policy
from gpushare.scheduling.snapshot import IterationCurve, JobState, Snapshot, compress
from gpushare.scheduling.thread import native_ordinal

LOOK_EVERY_S = 0.5  # as the scheduler thread does


class Planner:
    """Asks the policy when the governor has news, and publishes its permits at once.

    :param pace: compares running side by side with taking turns; None where the policy does not do that.
    """

    def __init__(self, governor: SimulatedGovernor, policy: Policy, pace: Pace | None) -> None:
        self._governor, self._policy, self._pace = governor, policy, pace
        self._planned: tuple[int, bool] | None = None

    @property
    def looks_at_pace(self) -> bool:
        """Whether `look` has anything to do."""
        return self._pace is not None

    @property
    def turns_s(self) -> float:
        """For how long the jobs took turns."""
        return self._pace.yields.turns_s if self._pace else 0.0

    def look(self, now_s: float, accounts: Sequence[int]) -> None:
        """To be called every `LOOK_EVERY_S` or so."""
        if self._pace:
            found = {account: self._progress(account) for account in accounts}
            self._pace.look(now_s, {account: p for account, p in found.items() if p})

    def plan(self, accounts: Sequence[int]) -> None:
        """New permits, if anything that a policy looks at is new."""
        turns = self._pace.turns if self._pace else False
        seen = self._governor.version(), turns
        if seen == self._planned:
            return
        self._planned = seen
        jobs = tuple(JobState(account, self._curve(account)) for account in accounts)
        pool = self._governor.pool()
        reserved = pool.headroom_bytes + pool.shared_bytes
        for permit in self._policy(Snapshot(pool.budget_bytes, jobs, reserved, turns)):
            shift_ns = round(permit.shift_s * 1e9)
            self._governor.permit(permit.account, permit.after, native_ordinal(permit), shift_ns)

    def _curve(self, account: int) -> IterationCurve | None:
        curve = self._governor.curve(account)
        if curve is None:
            return None
        return compress(curve.held_bytes, [t / 1e9 for t in curve.time_ns], curve.residue_bytes)

    def _progress(self, account: int) -> Progress | None:
        job = self._governor.job(account)
        if not job.curve_length or not job.solo_ns:
            return None
        return Progress(job.iterations + min(1.0, job.ordinal / job.curve_length), job.solo_ns / 1e9)
