"""Discrete events: jobs go through their measured iterations, and the shim's governor says who may go on.

A job is always in one of five states: not there yet, not begun yet (`queue`), computing towards its next step,
waiting, over. Between two events every computing job does its work at its pace (`contention`). At a step it asks the
governor for what the step holds; at the end of an iteration it is at its door. Whoever waits is looked at again once
the governor has let it go.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from gpushare.jobs import SRTF
from gpushare.native.simulation import Answer, SimulatedGovernor
from gpushare.scheduling.leases import segment_bytes
from gpushare.scheduling.order import Claimant, rank_in_queue
from gpushare.scheduling.policies import Policy
from gpushare.scheduling.yields import Yields
from gpushare.simulation.contention import Contention
from gpushare.simulation.job import SimulatedJob
from gpushare.simulation.outcome import FAILED, OK, OUT_OF_MEMORY, REFUSED, Held, JobOutcome
from gpushare.simulation.planner import Planner, SegmentBytes
from gpushare.simulation.queue import Queue
from gpushare.simulation.record import Record
from gpushare.simulation.rules import PLAIN, Rules
from gpushare.simulation.runner import Place, Runner, State

PAGE_BYTES = 2 << 20
_TICK_S = 0.01  # as the sampler does
_IDLE_TICK_S = 1.0  # while jobs compute and nothing has happened since the last tick
_STUCK_S = 60.0  # longer than any wait that the governor bounds
_INSTANT_S = 1e-10


class SimulationStuck(Exception):
    """Every job waits and the governor resolves nothing: what must never be."""


def _rank_in_queue(order: str, job: SimulatedJob) -> int:
    # It takes the sum over all iterations, of which there may be any number.
    return rank_in_queue(order, job.priority, job.solo_s if order == SRTF else None)


class Engine:
    """One simulated run.

    :param policy: publishes permits; `mechanism` is the governor's own policy ("zico" where permits count).
    :param modes: as `Planner` takes them, `segments` and `rules` too.
    """

    def __init__(
        self,
        jobs: Sequence[SimulatedJob],
        *,
        policy: Policy,
        mechanism: str,
        budget_bytes: int,
        contention: Contention,
        page_bytes: int = PAGE_BYTES,
        modes: Sequence[str] = (),
        record: bool = True,
        segments: SegmentBytes = segment_bytes,
        rules: Rules = PLAIN,
    ) -> None:
        self.governor = SimulatedGovernor(policy=mechanism, page_bytes=page_bytes, budget_bytes=budget_bytes)
        self._runners = [
            Runner(job, i, _rank_in_queue(rules.order, job), job.arrival_s) for i, job in enumerate(jobs)
        ]
        self._contention = contention
        self._threads = [job.threads for job in jobs]
        self._planner = Planner(self.governor, policy, modes, segments, rules)
        self._record = Record(len(jobs), timed=record)
        self._queue = Queue(self.governor, mechanism, self._held_by, lambda: self._planner.at_once)
        self._paces: dict[tuple[int, ...], list[float]] = {}
        self.now_s = 0.0
        self._happened_s = self._ticked_s = self._looked_s = 0.0

    def run(self) -> None:
        """To the end of the last job.

        :raises SimulationStuck: see there.
        """
        while self.running:
            self.advance()

    def advance(self) -> None:
        """To the next event, and through all that it brings about."""
        at_s = self._next_event()
        self._compute(at_s - self.now_s)
        self.now_s = at_s
        self.governor.set_time(round(at_s * 1e9))
        due = [r for r in self._runners if r.left_s <= _INSTANT_S]
        self._arrive([r for r in due if r.state is State.AWAY])
        for runner in sorted(due, key=self._rises):  # who frees goes first
            if runner.state is State.COMPUTING:
                self._go_on(runner)
                self._settle()
        self._let_in()
        self._look()
        self._tick()
        self._look_at_doors()
        self._planner.rank(self._claimants)
        self._planner.plan(self.now_s, self._accounts())
        self._settle()
        self._let_in()
        if self._waiting() and self.now_s - self._happened_s > _STUCK_S and not self._computing():
            raise SimulationStuck(", ".join(f"{r.job.name}: {r.place.value}" for r in self._waiting()))

    @property
    def running(self) -> bool:
        """Whether any job is still to come or to end."""
        return any(r.state is not State.OVER for r in self._runners)

    @property
    def has_waited(self) -> bool:
        """Whether any job ever waited, for however short a time."""
        return any(self._waited(r) > _INSTANT_S for r in self._runners)

    def _waited(self, runner: Runner) -> float:
        waits = runner.state in (State.WAITING, State.QUEUED)
        now_s = self.now_s - runner.waiting_since_s if waits else 0.0
        return max(runner.longest_wait_s, now_s)

    @property
    def has_failed(self) -> bool:
        """Whether any job ended before it had done all its iterations."""
        return any(r.state is State.OVER and r.status != OK for r in self._runners)

    @property
    def all_have_run(self) -> bool | None:
        """Whether every job came to iterate before another was over; None while that can't be told."""
        if all(r.first_end_s is not None for r in self._runners):
            return True
        return False if any(r.state is State.OVER for r in self._runners) else None

    def outcomes(self) -> list[JobOutcome]:
        """Of each job, so far."""
        return [self._record.outcome(r, self.governor) for r in self._runners]

    @property
    def pool_peak_bytes(self) -> int:
        """The most that all jobs held together."""
        return self._record.peak_bytes

    @property
    def timeline(self) -> tuple[Held, ...]:
        """What each job held, in order of time."""
        return tuple(self._record.timeline)

    @property
    def work_s(self) -> float:
        """Solo seconds of iterations that all jobs have done so far."""
        return sum(r.done_s for r in self._runners)

    @property
    def window_s(self) -> float:
        """See `Outcome`; nought if no job ended well."""
        return self._record.window_s

    @property
    def yields(self) -> Yields:
        """For how long the jobs ran in each mode, and what it was measured to yield."""
        return self._planner.yields

    # Time

    def _next_event(self) -> float:
        running = self._computing()
        times = [self.now_s + r.left_s for r in self._runners if r.state is State.AWAY]
        paces = self._paces_of(running)
        times += [self.now_s + r.left_s / pace for r, pace in zip(running, paces, strict=True)]
        if self._waiting():
            quiet = bool(times) and self._ticked_s > self._happened_s
            times.append(self._ticked_s + _IDLE_TICK_S if quiet else self._next_tick())
            if (planned_ns := self.governor.next_look_ns()) is not None:
                times.append(planned_ns / 1e9)
        if self._planner.looks_at_pace:
            times.append(self._looked_s + self._planner.look_again_s)
        return max(self.now_s, min(times))

    def _next_tick(self) -> float:
        return (math.floor(self.now_s / _TICK_S + 1e-6) + 1) * _TICK_S

    def _compute(self, seconds: float) -> None:
        running = self._computing()
        for runner, pace in zip(running, self._paces_of(running), strict=True):
            runner.left_s -= seconds * pace
            runner.done_s += seconds * pace
        for runner in self._runners:
            if runner.state is State.AWAY:
                runner.left_s -= seconds

    def _paces_of(self, running: Iterable[Runner]) -> list[float]:
        key = tuple(r.index for r in running)
        if key not in self._paces:
            self._paces[key] = [self._contention.pace(i, key, self._threads) for i in key]
        return self._paces[key]

    def _computing(self) -> list[Runner]:
        return [r for r in self._runners if r.state is State.COMPUTING]

    def _waiting(self) -> list[Runner]:
        return [r for r in self._runners if r.state is State.WAITING]

    def _accounts(self) -> list[int]:
        return [r.account for r in self._runners if r.account and r.state is not State.OVER]

    def _claimants(self) -> list[Claimant]:
        """Each is known to do as many iterations as it was told to."""
        return [
            Claimant(r.account, r.job.priority, r.job.iterations, r.iterations, r.job.mean_iteration_s)
            for r in self._runners
            if r.account and r.state is not State.OVER
        ]

    def _look(self) -> None:
        if self.now_s >= self._looked_s + self._planner.look_again_s - _INSTANT_S:
            self._look_now()

    def _look_now(self) -> None:
        if self._planner.looks_at_pace:
            self._looked_s = self.now_s
            self._planner.look(self.now_s, self._accounts())

    def _tick(self) -> None:
        if self._waiting() and self.now_s >= self._ticked_s + _TICK_S - _INSTANT_S:
            self._ticked_s = self.now_s
            self.governor.tick()

    def _look_at_doors(self) -> None:
        planned_ns = self.governor.next_look_ns()
        if planned_ns is not None and planned_ns <= round(self.now_s * 1e9):
            self.governor.look_at_doors()

    # Jobs

    def _rises(self, runner: Runner) -> bool:
        inside = runner.state is State.COMPUTING and runner.step < len(runner.shape.held_bytes)
        return inside and runner.held_at(runner.step) > self._held_by(runner)

    def _held_by(self, runner: Runner) -> int:
        return self._record.held[runner.index]

    def _arrive(self, runners: Sequence[Runner]) -> None:
        for runner in runners:
            self._record.note_arrival(self.now_s, self._runners)
            runner.left_s = math.inf
            self._queue.enter(runner, self.now_s)

    def _let_in(self) -> None:
        """Of those that are not begun all that now fit: they are known, and permits lie ready, before they ask for
        anything, since a real set-up takes longer than a plan. Who is refused then leaves room for others."""
        while begun := list(iter(self._begin_next, None)):
            self._planner.rank(self._claimants)
            self._look_now()
            self._planner.plan(self.now_s, self._accounts())
            for runner in begun:
                self._ask(runner, Place.SET_UP)
                self._settle()

    def _begin_next(self) -> Runner | None:
        runner = self._queue.next(self._runners, self.now_s)
        if runner:
            self._begin(runner)
        return runner

    def _begin(self, runner: Runner) -> None:
        """The governor knows it from now on."""
        job = runner.job
        held_bytes, time_s = (job.held_bytes, job.time_s) if job.has_profile else ((), ())
        times_ns = [round(t * 1e9) for t in time_s]
        duration_ns = round(job.iteration_s * 1e9)
        runner.account = self.governor.job_begin(held_bytes, times_ns, job.residue_bytes, duration_ns)

    def _go_on(self, runner: Runner) -> None:
        """The work before the next thing to ask for is done."""
        if (runner.iterations, runner.step) == runner.job.fails_at:
            self._end(runner, FAILED, None)
        elif runner.step < len(runner.shape.held_bytes):
            self._ask(runner, Place.STEP)
        else:
            self._end_iteration(runner)

    def _ask(self, runner: Runner, place: Place) -> None:
        runner.place = place
        self._happened_s = self.now_s
        if place is Place.SET_UP:
            answer = self.governor.hold(runner.account, runner.job.residue_bytes)
        elif place is Place.DOOR:
            answer = self.governor.door(runner.account)
        else:
            answer = self.governor.hold(runner.account, runner.held_at(runner.step))
        if answer is Answer.WAITS:
            runner.state, runner.waiting_since_s = State.WAITING, self.now_s
        else:
            self._answered(runner, answer)

    def _settle(self) -> None:
        """Everybody whom the governor has let go goes on."""
        while accounts := self.governor.ready():
            for runner in self._runners:
                if runner.account in accounts:
                    runner.waited(self.now_s)
                    self._happened_s = self.now_s
                    self._answered(runner, self.governor.look(runner.account))

    def _answered(self, runner: Runner, answer: Answer) -> None:
        if answer is Answer.REFUSED:
            status = OUT_OF_MEMORY if runner.iterations or runner.place is Place.STEP else REFUSED
            self._end(runner, status, self.governor.refusal())
        elif runner.place is Place.SET_UP:
            self._note_held(runner, runner.job.residue_bytes)
            self._ask(runner, Place.DOOR)
        elif runner.place is Place.DOOR:
            runner.begin()
            self._work_towards(runner, 0)
        else:
            self._note_held(runner, runner.held_at(runner.step))
            self._work_towards(runner, runner.step + 1)

    def _work_towards(self, runner: Runner, step: int) -> None:
        runner.state = State.COMPUTING
        runner.step = step
        runner.left_s = runner.work_before(step)

    def _end_iteration(self, runner: Runner) -> None:
        runner.iterations += 1
        if runner.first_end_s is None:
            runner.first_end_s = self.now_s
        self.governor.free(runner.account, runner.job.residue_bytes)
        self._note_held(runner, min(self._held_by(runner), runner.job.residue_bytes))
        if runner.iterations < runner.job.iterations:
            self._ask(runner, Place.DOOR)
        else:
            self._end(runner, OK, None)

    def _end(self, runner: Runner, status: str, message: str | None) -> None:
        runner.state, runner.status, runner.message = State.OVER, status, message
        runner.end_s = self._happened_s = self.now_s
        runner.left_s = math.inf
        self._record.note_end(self.now_s, status, self._runners)
        self._note_held(runner, 0)
        self.governor.job_end(runner.account)

    def _note_held(self, runner: Runner, held_bytes: int) -> None:
        self._record.note_held(self.now_s, runner.index, held_bytes)
