"""Jobs that have come and wait to be begun: `scheduling.admission` says who may, as it does in a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gpushare.native.simulation import SimulatedGovernor
from gpushare.scheduling.admission import Need, first_to_begin, queues
from gpushare.simulation.runner import Runner, State


class Queue:
    """To be asked for the `next` one after every event.

    :param policy: the governor's.
    :param held: bytes that a job holds now.
    :param at_once: how many jobs at once do more than all that fit; None: that is not known.
    """

    def __init__(
        self,
        governor: SimulatedGovernor,
        policy: str,
        held: Callable[[Runner], int],
        at_once: Callable[[], int | None],
    ) -> None:
        self._governor, self._queues, self._held, self._at_once = governor, queues(policy), held, at_once
        self._waiting: list[Runner] = []
        self._came = 0
        # What there was when nobody could be begun.
        self._in_vain: tuple[int, int, int, int | None] | None = None

    def enter(self, runner: Runner, now_s: float) -> None:
        """It has come."""
        runner.state, runner.waiting_since_s, runner.came = State.QUEUED, now_s, self._came
        self._came += 1
        self._waiting.append(runner)

    def next(self, all_jobs: Iterable[Runner], now_s: float) -> Runner | None:
        """Who is to be begun now beside those that are, and leaves the queue; None for nobody."""
        if not self._waiting:
            return None
        room_bytes = self._governor.pool().for_jobs_bytes
        version = self._governor.version()  # it changes with jobs and curves
        here = self._came, version, room_bytes, self._at_once()
        if here == self._in_vain:
            return None
        begun = [r for r in all_jobs if r.account and r.state is not State.OVER] if self._queues else []
        runner = first_to_begin(self._waiting, map(self._needs, begun), room_bytes, self._at_once())
        self._in_vain = None if runner else here
        if runner:
            self._waiting.remove(runner)
            runner.queued_s = runner.waited(now_s)
        return runner

    def _needs(self, runner: Runner) -> Need:
        """By its saved profile, and as measured; before that, what it holds."""
        curve = self._governor.curve(runner.account)
        held_bytes = self._held(runner)
        now = Need.of_curve(curve.held_bytes, curve.residue_bytes) if curve else Need(held_bytes, held_bytes)
        return now.or_more(runner.need or Need(0, 0))
