"""Every schedule of a few small jobs, through every policy: at each moment each job that can go on is the next to.

So no order of steps is left to chance: each job may be as slow as it likes beside the others, arrive, leave or find
another budget at any moment of theirs. In the cases below that comes to 104,000 schedules, in which 390,000 moments
differ by what came before them; it takes under a minute. `test_policies_conform` draws larger jobs at random, with
other times. Nothing waits out the governor's last resort here unless claims are wrong: if all wait, that is a deadlock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from shapes import PAGE
from test_policies_conform import MANAGED, subject

from gpushare.jobs import FIFO
from gpushare.native.library import NativeError
from gpushare.native.shim import PoolState
from gpushare.native.simulation import Answer, SimulatedGovernor
from gpushare.scheduling.leases import segment_bytes
from gpushare.scheduling.policies import MODES
from gpushare.simulation.planner import Planner
from gpushare.simulation.rules import PLAIN

STEP_NS = 10**7  # from one step to the next, and from one tick of the sampler to the next
LONGEST_NS = 60 * 10**9  # that a wait may take where claims are wrong


@dataclass(frozen=True)
class Small:
    """A job of few pages: in each iteration it comes to hold these, one after the other, and then its residue.

    `claimed`: what its curve says instead; nothing: it has none, and is measured. `late`: it arrives at any moment.
    `leaves_after`: in its last iteration it ends after so many steps, with all that it holds.
    """

    held: tuple[int, ...]
    residue: int = 0
    iterations: int = 2
    claimed: tuple[int, ...] | None = None
    late: bool = False
    leaves_after: int | None = None


@dataclass(frozen=True)
class Case:
    """Jobs in a budget of so many pages, and other budgets that are asked for, each at any moment."""

    jobs: tuple[Small, ...]
    budget: int
    budgets: tuple[int, ...] = ()


@dataclass
class Found:
    """What the schedules of a case came to."""

    schedules: int = 0
    moments: int = 0  # each was come to by another order of steps
    stalled: int = 0  # schedules in which somebody waited for memory
    refused: int = 0  # jobs
    cuts: int = 0  # schedules in which a smaller budget came


class Run:
    """One schedule. `choose` says which of so many jobs takes its next step."""

    def __init__(self, name: str, case: Case, governor: SimulatedGovernor, planner: Planner | None) -> None:
        self.name, self.case, self.governor, self.planner = name, case, governor, planner
        self.right = not any(job.claimed for job in case.jobs)
        self.accounts: dict[int, int] = {}  # of jobs, by their index
        self.lives = [self._life(i, job) for i, job in enumerate(case.jobs)]
        if case.budgets:
            self.lives.append(self._budgets())
        self.over: set[int] = set()
        self.waiting: set[int] = set()
        self.refused = 0
        self.cut = False  # whether a smaller budget has come
        self.now_ns = self.looked_ns = 0

    def play(self, choose: Callable[[int], int]) -> None:
        for i, job in enumerate(self.case.jobs):
            if not job.late:
                next(self.lives[i])
        self._plan()
        while len(self.over) < len(self.lives):
            able = [i for i in range(len(self.lives)) if i not in self.over | self.waiting]
            self._step(able[choose(len(able))])
            self._pass_time()
            if not self.right:
                self._wait_for_the_last_resort()
            assert not self._all_wait, f"all wait: {self.waiting}"
        assert self.governor.pool().held_bytes == 0

    def _step(self, i: int) -> None:
        answer = next(self.lives[i], None)
        if answer is Answer.WAITS:
            self.waiting.add(i)
        elif answer is Answer.REFUSED:
            self._refuse(i)
        elif answer is None:
            self.over.add(i)

    def _refuse(self, i: int) -> None:
        assert not self.right or self.name == "unmanaged", self.governor.refusal()
        assert "the budget is" in self.governor.refusal()
        self.governor.job_end(self.accounts[i])
        self.over.add(i)
        self.refused += 1

    def _wait_for_the_last_resort(self) -> None:
        until_ns = self.now_ns + LONGEST_NS
        while self._all_wait and self.now_ns < until_ns:
            self._pass_time()

    @property
    def _all_wait(self) -> bool:
        """Whether each job that is there does: who is still to come, or another budget, is no way out."""
        return bool(self.waiting) and self.accounts.keys() <= self.over | self.waiting

    def _pass_time(self) -> None:
        self._settle()
        self.now_ns += STEP_NS
        self.governor.set_time(self.now_ns)
        if self.waiting:
            self.governor.tick()
        self._plan()
        self._settle()
        pool = self.governor.pool()
        self.cut = self.cut or pool.budget_bytes < self.case.budget * PAGE
        assert pool.held_bytes <= pool.budget_bytes
        self.governor.check()

    def _plan(self) -> None:
        if self.planner:
            accounts = [account for i, account in self.accounts.items() if i not in self.over]
            if self.now_ns >= self.looked_ns + self.planner.look_again_s * 1e9:
                self.looked_ns = self.now_ns
                self.planner.look(self.now_ns / 1e9, accounts)
            self.planner.plan(self.now_ns / 1e9, accounts)

    def _settle(self) -> None:
        while ready := self.governor.ready():
            for i in sorted(self.waiting):
                if self.accounts[i] not in ready:
                    continue
                self.waiting.remove(i)
                if self.governor.look(self.accounts[i]) is Answer.REFUSED:
                    self._refuse(i)

    def _life(self, index: int, job: Small) -> Iterator[Answer]:
        """What becomes of each of its steps."""
        curve = job.held if job.claimed is None else job.claimed
        times_ns = [n * STEP_NS for n in range(len(curve))]
        account = self.governor.job_begin(
            [pages * PAGE for pages in curve], times_ns, job.residue * PAGE, len(curve) * STEP_NS
        )
        self.accounts[index] = account
        if job.late:
            self._plan()
        else:
            yield Answer.GOES_ON
        if (answer := self.governor.hold(account, job.residue * PAGE)) is not Answer.GOES_ON:
            yield answer
        for left in reversed(range(job.iterations)):
            yield self.governor.door(account)
            for pages in job.held if left else job.held[: job.leaves_after]:
                yield self.governor.hold(account, pages * PAGE)
            if left or job.leaves_after is None:
                self.governor.free(account, job.residue * PAGE)
        self.governor.job_end(account)

    def _budgets(self) -> Iterator[Answer]:
        for n, pages in enumerate(self.case.budgets):
            if n > 0:
                yield Answer.GOES_ON
            try:
                self.governor.set_budget(pages * PAGE)
            except NativeError as error:
                assert "the jobs need at least" in str(error)


def every_schedule(play: Callable[[Callable[[int], int]], None]) -> Iterator[int]:
    """Plays each once, from its beginning, depth first. Yields the moments in it that none before came to."""
    pending: list[tuple[int, ...]] = [()]
    while pending:
        begun = pending.pop()
        path: list[int] = []

        def choose(among: int, begun: tuple[int, ...] = begun, path: list[int] = path) -> int:
            chosen = begun[len(path)] if len(path) < len(begun) else 0
            if len(path) >= len(begun):
                pending.extend((*path, other) for other in range(1, among))
            path.append(chosen)
            return chosen

        play(choose)
        yield len(path) - max(0, len(begun) - 1)


def explore(name: str, case: Case) -> Found:
    found = Found()

    def play(choose: Callable[[int], int]) -> None:
        mechanism, policy = subject(name, seed=0)
        governor = SimulatedGovernor(policy=mechanism, page_bytes=PAGE, budget_bytes=case.budget * PAGE)
        with governor:
            governor.order(FIFO, 0)
            planner = Planner(governor, policy, MODES.get(name, ()), segment_bytes, PLAIN)
            run = Run(name, case, governor, planner)
            run.play(choose)
            jobs = [governor.job(account) for account in run.accounts.values()]
            found.stalled += any(job.memory_waits for job in jobs)
            found.refused += run.refused
            found.cuts += run.cut
            for job in jobs:
                assert job.most_passed <= 1
                assert not run.right or job.overruns == job.copies_out == 0

    for moments in every_schedule(play):
        found.schedules += 1
        found.moments += moments
    return found


WANTED = Case((Small((3, 5)), Small((3, 5))), budget=7)
WRONG = Case((Small((2, 5), claimed=(2, 3)), Small((3, 5), claimed=(3, 4))), budget=7)
CASES = {
    "each wants what another may hold": WANTED,
    "they fit in places": Case((Small((2, 5, 1)), Small((3, 4))), budget=7),
    "a small one may pass": Case(
        (Small((1,)), Small((5,), iterations=1), Small((3, 1), iterations=1)), budget=7
    ),
    "three that keep some": Case((Small((3, 4), 1, 1), Small((2, 4), 1, 1), Small((4,), 2, 1)), budget=8),
    "one comes and one leaves": Case(
        (
            Small((3, 5), iterations=1),
            Small((2, 4), iterations=1, leaves_after=1),
            Small((4,), 1, 1, late=True),
        ),
        budget=7,
    ),
    "the budget is cut": Case((Small((2, 4), 1), Small((3, 5), iterations=1)), budget=9, budgets=(6,)),
    "it is cut and raised": Case(
        (Small((4,), 1, iterations=1), Small((3, 5), iterations=1)), budget=8, budgets=(6, 9)
    ),
    "one is measured first": Case((Small((3, 2), iterations=3, claimed=()), Small((2, 4))), budget=6),
    "both are measured first": Case(
        (Small((3, 2), 1, 3, claimed=()), Small((2, 4), iterations=3, claimed=())), budget=6
    ),
    "claims are wrong": WRONG,
    "three claims are wrong": Case(
        (
            Small((2, 4), iterations=1, claimed=(2, 3)),
            Small((2, 4), iterations=1, claimed=(2, 3)),
            Small((3,), iterations=1, claimed=(2,)),
        ),
        budget=6,
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", MANAGED)
def test_every_schedule_ends(name: str, case: str) -> None:
    found = explore(name, CASES[case])
    assert found.refused == 0
    assert (found.cuts > 0) == bool(CASES[case].budgets)
    if name == "greedy":
        assert found.stalled >= 0.1 * found.schedules  # so it is the check that they end by


@pytest.mark.parametrize("case", [WANTED, WRONG])
def test_without_coordination_nobody_waits(case: Case) -> None:
    found = explore("unmanaged", case)
    assert found.schedules > found.refused > 0 and found.stalled == 0


class Counting:
    """What a governor would be that lets everybody take what is there."""

    def __init__(self, pages: int) -> None:
        self._budget = pages * PAGE
        self._held: list[int] = []
        self._wanted: dict[int, int] = {}

    def job_begin(self, *_: object) -> int:
        self._held.append(0)
        return len(self._held) - 1

    def door(self, account: int) -> Answer:
        return Answer.GOES_ON

    def hold(self, account: int, held_bytes: int) -> Answer:
        if sum(self._held) - self._held[account] + held_bytes > self._budget:
            self._wanted[account] = held_bytes
            return Answer.WAITS
        self._held[account] = held_bytes
        return Answer.GOES_ON

    def free(self, account: int, held_bytes: int) -> None:
        self._held[account] = held_bytes

    def job_end(self, account: int) -> None:
        self._held[account] = 0

    def ready(self) -> list[int]:
        rest = {account: sum(self._held) - self._held[account] for account in self._wanted}
        return [account for account, wanted in self._wanted.items() if rest[account] + wanted <= self._budget]

    def look(self, account: int) -> Answer:
        return self.hold(account, self._wanted.pop(account))

    def pool(self) -> PoolState:
        return PoolState(sum(self._held), 0, 0, self._budget, 0, 0, 0)

    def set_time(self, now_ns: int) -> None:
        pass

    def tick(self) -> None:
        pass

    def check(self) -> None:
        pass


def test_the_search_finds_the_deadlock_of_one_that_only_counts() -> None:
    with pytest.raises(AssertionError, match="all wait"):
        for _ in every_schedule(
            lambda choose: Run("greedy", WANTED, Counting(WANTED.budget), None).play(choose)
        ):
            pass
