"""The scheduler thread's work in virtual time: snapshots, the policy, its permits, and the mode that jobs run in."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import cast

from gpushare.native.simulation import SimulatedGovernor
from gpushare.scheduling import order as orders
from gpushare.scheduling.fewer import Resident, residents
from gpushare.scheduling.forecast import forecasts
from gpushare.scheduling.order import Claimant
from gpushare.scheduling.pace import Pace
from gpushare.scheduling.policies import OF_MODE, Policy, may_set_aside
from gpushare.scheduling.progress import Measured
from gpushare.scheduling.snapshot import IterationCurve, JobState, Permit, Snapshot, from_measured
from gpushare.scheduling.thread import native_permit
from gpushare.scheduling.trials import LOOK_S
from gpushare.scheduling.yields import Yields
from gpushare.simulation.rules import Rules

SegmentBytes = Callable[[Policy, Snapshot, Sequence[Permit]], int]


@lru_cache(maxsize=256)
def _permits(policy: Hashable, snapshot: Snapshot) -> list[Permit]:
    """Policies are pure, and runs of the same jobs, under other policies or again, begin alike."""
    return cast(Policy, policy)(snapshot)


class Planner:
    """Asks the policy when the governor has news, and publishes its permits at once.

    :param modes: among which the policy chooses by measurement (`scheduling.pace`); none if it does not.
    :param segments: of what size leases are, as `scheduling.leases.segment_bytes` says it.
    :param rules: its split is for the policy; its order is for `rank`.
    """

    def __init__(
        self,
        governor: SimulatedGovernor,
        policy: Policy,
        modes: Sequence[str],
        segments: SegmentBytes,
        rules: Rules,
    ) -> None:
        self._governor, self._policy, self._modes = governor, policy, modes
        self._segments, self._rules = segments, rules
        self._ranks: dict[int, int] = {}
        self._pace = Pace()
        self._aside: frozenset[int] = frozenset()
        self._may_set_aside = may_set_aside(modes, rules.order)
        self._planned: tuple[int, str | None, frozenset[int]] | None = None
        self._planned_for: tuple[str | None, tuple[int, ...], int, frozenset[int]] | None = None
        self._planned_s = 0.0
        self._measured = Measured()

    @property
    def looks_at_pace(self) -> bool:
        """Whether `look` has anything to do."""
        return bool(self._modes)

    @property
    def look_again_s(self) -> float:
        """Seconds from one `look` to the next."""
        return self._pace.look_again_s

    @property
    def at_once(self) -> int | None:
        """How many jobs were found to do more than all of them."""
        return self._pace.at_once

    @property
    def yields(self) -> Yields:
        """For how long the jobs ran in each mode, and what it was measured to yield."""
        return self._pace.yields

    def look(self, now_s: float, accounts: Sequence[int]) -> None:
        """To be called every `look_again_s`."""
        told = {account: self._governor.progress(account) for account in accounts}
        jobs = {
            account: self._measured.of(account, progress) for account, progress in told.items() if progress
        }
        self._pace.look(
            now_s,
            jobs,
            lambda counted, of=None: forecasts(self._snapshot(list(counted), None), of or self._modes),
            residents=self._residents(accounts) if self._may_set_aside else (),
            copied_out=self._governor.copied_out() if self._may_set_aside else (),
            begun=len(accounts),
        )
        if self._pace.aside != self._aside:
            self._aside = self._pace.aside
            self._governor.aside(self._aside)

    def _residents(self, accounts: Sequence[int]) -> list[Resident]:
        return residents([JobState(account, self._curve(account)) for account in accounts], self._ranks)

    def rank(self, claimants: Callable[[], Sequence[Claimant]]) -> None:
        """Publish who goes before whom, where the order needs that."""
        if self._rules.order not in orders.BY_RANK:
            return
        for account, rank in orders.ranks(self._rules.order, claimants()).items():
            if self._ranks.get(account) != rank:
                self._ranks[account] = rank
                self._governor.rank(account, rank)

    def plan(self, now_s: float, accounts: Sequence[int]) -> None:
        """New permits, if anything that a policy looks at is new; for curves that were refined every now and then."""
        seen = self._governor.version(), self._pace.mode, self._aside
        others = self._pace.mode, tuple(accounts), self._governor.pool().budget_bytes, self._aside
        if seen == self._planned or (others == self._planned_for and now_s < self._planned_s + LOOK_S):
            return
        self._planned, self._planned_for, self._planned_s = seen, others, now_s
        mode = self._pace.mode
        policy = (
            OF_MODE[mode] if mode else self._policy
        )  # a mode's permits are those of the policy of its name
        snapshot = self._snapshot(accounts, mode)
        permits = _permits(cast(Hashable, policy), snapshot)
        self._governor.split(self._segments(policy, snapshot, permits))
        self._governor.permits([native_permit(permit) for permit in permits])

    def _snapshot(self, accounts: Sequence[int], mode: str | None) -> Snapshot:
        jobs = tuple(JobState(account, self._curve(account)) for account in accounts)
        pool = self._governor.pool()
        reserved_bytes = pool.headroom_bytes + pool.shared_bytes
        return Snapshot(
            pool.budget_bytes,
            jobs,
            reserved_bytes,
            mode,
            self._rules.split_bytes,
            self._pace.groups,
            self._aside,
        )

    def _curve(self, account: int) -> IterationCurve | None:
        curve = self._governor.curve(account)
        return None if curve is None else from_measured(curve)
