"""Which mode jobs run in: what each one yields is measured while they run.

A mode is a policy that permits come from: a sharing one, or taking turns. Two jobs that each fill the device, or the
GIL, can lose by running side by side, and of two ways of sharing the better one depends on the jobs. What is measured
of a mode is its efficiency (`scheduling.efficiency`): 1 is one job after the other.

The mode with the best forecast comes first. Where another one is known or believed to be better than what is measured
it is taken. Taking turns is believed to have 1; but where the mode in force has become slower that is put down to the
machine, which would slow turns down as well, until it lasts (`scheduling.modes`). Else another one is only tried, as
far as that can be afforded (`scheduling.trials`): a trial ends before another look could find more lost.

Of three jobs or more some may be better apart. How fast each one is beside the others says which ones that may be
(`scheduling.groups`): taking turns in these groups is a mode too, once sharing has been measured. So is to have fewer
of them there at once (`scheduling.fewer`); it is never only tried, since what is copied out takes time. While some are
set aside nothing tells what sharing would do by now: where that is in doubt when others come in (a turn's end), sharing
is tried, for which all come back.

The state is in `in_force`, what follows from what the mode in force does in `home_verdicts`, from trials in
`trial_verdicts`, and of fewer jobs at once in `fewer_verdicts`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gpushare.scheduling.fewer import Forecast, Resident
from gpushare.scheduling.fewer_verdicts import FewerVerdicts
from gpushare.scheduling.groups import Groups
from gpushare.scheduling.home_verdicts import HomeVerdicts
from gpushare.scheduling.in_force import InForce
from gpushare.scheduling.modes import MARGIN
from gpushare.scheduling.progress import Jobs
from gpushare.scheduling.snapshot import FEWER, GROUPS, TURNS
from gpushare.scheduling.trial_verdicts import TrialVerdicts
from gpushare.scheduling.trials import CLOSE_LOOK_S, LOOK_S
from gpushare.scheduling.yields import Yields, mode_yield


class Pace:
    """Chooses among the modes for the jobs at hand, and anew when jobs come, go or change their phase."""

    def __init__(self) -> None:
        self._in_force = InForce()
        self._fewer_verdicts = FewerVerdicts(self._in_force)
        self._trial_verdicts = TrialVerdicts(self._in_force, self._fewer_verdicts)
        self._home_verdicts = HomeVerdicts(self._in_force, self._fewer_verdicts, self._trial_verdicts)
        self._forecast: Forecast = lambda counted, of=None: {}
        self._phases: dict[int, tuple[int, ...]] = {}
        self._looked_s: float | None = None
        self._solo_s: dict[int, float] = {}
        self._seconds: dict[str, float] = {}
        self._done_s: dict[str, float] = {}

    @property
    def mode(self) -> str | None:
        """In force, on trial or not; None: fewer than two jobs are there."""
        return self._in_force.mode

    @property
    def groups(self) -> Groups:
        """Of jobs that take turns; none where another mode is in force."""
        return self._in_force.group_search.groups if self.mode == GROUPS else ()

    @property
    def aside(self) -> frozenset[int]:
        """Accounts that run no iterations; none where another mode is in force."""
        return self._in_force.fewer_search.aside if self.mode == FEWER else frozenset()

    @property
    def at_once(self) -> int | None:
        """How many jobs were found to do more than all of them; None if none were, or these did not."""
        return self._in_force.fewer_search.at_once

    @property
    def yields(self) -> Yields:
        """Of all modes in the whole run, each as last measured."""
        known = self._in_force.known
        modes = {
            name: mode_yield(seconds, self._done_s.get(name, 0.0), known.get(name))
            for name, seconds in self._seconds.items()
        }
        return Yields(modes, self.mode, self._in_force.account.lost_s, dict(self._solo_s))

    @property
    def on_trial(self) -> bool:
        """Whether the mode is only being tried."""
        return self._in_force.on_trial

    @property
    def settled(self) -> bool:
        """Whether the mode in force is measured, and there to stay."""
        return self.mode is not None and not self.on_trial and not self._in_force.stay.fresh

    @property
    def look_again_s(self) -> float:
        """When to look next, from now."""
        return CLOSE_LOOK_S if self.on_trial or self._in_force.stay.fresh else LOOK_S

    def look(
        self,
        now_s: float,
        jobs: Jobs,
        forecast: Forecast,
        *,
        residents: Sequence[Resident] = (),
        copied_out: Collection[int] = (),
        begun: int = 0,
    ) -> str | None:
        """The mode for the jobs from now on; None for fewer than two. To be called every `look_again_s`.

        :param jobs: those that have done nothing yet do not count: with a saved profile a job is known while it is
            importing and loading, which is no mode's doing.
        :param forecast: the efficiency of each mode for these accounts, the first of equals preferred; called when the
            jobs that count change, or fewer at once may do more.
        :param residents: the jobs; none where nobody may be set aside.
        :param copied_out: accounts, wherever somebody may be set aside.
        :param begun: so many jobs have, those among them that have done nothing yet.
        """
        self._count_time(now_s)
        jobs = {account: job for account, job in jobs.items() if job.iterations > 0}
        self._forecast = forecast
        self._in_force.fewer_search.see(
            [resident for resident in residents if resident.account in jobs], forecast
        )
        phases = {account: job.phase for account, job in jobs.items()}
        if phases.keys() != self._phases.keys():
            self._restart(now_s, jobs)
        elif phases != self._phases and self.mode is not None:
            self._begin_anew(now_s)
        self._phases = phases
        if self.mode is not None:
            self._solo_s |= {account: job.solo_s for account, job in jobs.items()}
            done_s = self._in_force.meter.count(now_s, jobs)
            self._done_s[self.mode] = self._done_s.get(self.mode, 0.0) + done_s
            if not self._in_force.fewer_search.is_settled(now_s, copied_out, begun <= len(jobs)):
                self._in_force.meter.wait(now_s)
            self._judge(now_s)
        return self.mode

    def _count_time(self, now_s: float) -> None:
        if self._looked_s is not None and self.mode is not None:
            passed_s = now_s - self._looked_s
            self._seconds[self.mode] = self._seconds.get(self.mode, 0.0) + passed_s
            self._in_force.account.count(passed_s, on_trial=self.on_trial)
        self._looked_s = now_s

    def _restart(self, now_s: float, jobs: Jobs) -> None:
        """Other jobs are there."""
        now = self._in_force
        now.stop_trial(now_s)
        before, were_fewer = now.modes, now.mode == FEWER
        found = dict(self._forecast(jobs.keys())) if len(jobs) > 1 else {}
        now.restart(now_s, jobs, found)
        if found:
            best = max(found, key=lambda name: found[name])
            best = TURNS if found[best] <= found.get(TURNS, 0.0) * MARGIN else best
            stays = were_fewer and self._fewer_verdicts.stays(before)
            if were_fewer and not stays and len(jobs) > (now.fewer_search.at_once or 0):
                now.fewer_search.give_up()
            now.take(now_s, FEWER if stays else best)

    def _begin_anew(self, now_s: float) -> None:
        """The jobs have changed their phase: what was measured is only believed from now on."""
        now = self._in_force
        now.stop_trial(now_s)
        now.count_lost(now_s)
        if now.home == FEWER:  # phases may be shorter than a window, but not everybody's turns
            now.fewer_search.turn_is_over(now_s)
        now.fewer_search.restart(self._phases.keys())
        now.modes.forget(list(now.modes))
        now.stay.forget()
        if now.home == FEWER:
            self._fewer_verdicts.stay_or_not(now_s)
        else:
            now.modes.pop(FEWER, None)
            now.take(now_s, now.home)

    def _judge(self, now_s: float) -> None:
        reading = self._in_force.meter.read(now_s)
        if self.on_trial:
            self._trial_verdicts.judge(now_s, reading)
        elif reading:
            self._home_verdicts.judge(now_s, reading)
