"""What each mode is worth for the jobs at hand: what was measured of it, and what is believed since."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gpushare.scheduling.meter import Reading
from gpushare.scheduling.snapshot import FEWER, GROUPS, TURNS

AS_MEASURED = (
    TURNS,
    GROUPS,
    FEWER,
)  # what is believed of them is no forecast by curves, which leave out contention

MARGIN = 1.02  # by which another mode must be better


@dataclass
class Mode:
    """What is known of a mode for the jobs at hand: its efficiency now, as it is believed.

    That is a forecast, or what was `measured`, moved by as much as the mode in force has moved since: where the jobs do
    the same as before it is the machine that has changed, and it has for all modes.
    """

    worth: float
    measured: bool = False
    tried: bool = False
    trials: int = 0
    put_off: bool = False  # its last trial said nothing, since a job did nothing of its own accord
    readings: list[Reading] = field(default_factory=list)  # of its last trials, where these were close


class Modes(dict[str, Mode]):
    """By name; none while fewer than two jobs are there."""

    def worth_of(self, name: str) -> float:
        """As it is believed now."""
        return self[name].worth

    def best_beside(self, name: str) -> str | None:
        """The best one of the others."""
        return max((other for other in self if other != name), key=self.worth_of, default=None)

    def at_most(self, before: Modes) -> Modes:
        """Of each mode no more is believed than `before`, and nothing has been measured."""
        worth = {name: min(mode.worth, before.get(name, mode).worth) for name, mode in self.items()}
        return Modes({name: Mode(of) for name, of in worth.items()})

    @property
    def best_sharing(self) -> str | None:
        """The best one of those in which all jobs share all the time."""
        return max((name for name in self if name not in AS_MEASURED), key=self.worth_of, default=None)

    def forget(self, names: Iterable[str]) -> None:
        """What was measured of these is only believed from now on."""
        self.update({name: Mode(self[name].worth) for name in names})

    def note(self, name: str, worth: float, *, in_force: bool) -> None:
        """The mode was measured to be worth this; `in_force`: it is not only on trial."""
        for other, moved in self.others(name, worth, in_force=in_force).items():
            self[other].worth = moved
        mode = self[name]
        mode.worth, mode.measured, mode.tried = worth, True, True

    def others(self, name: str, worth: float, *, in_force: bool) -> dict[str, float]:
        """What the other modes are believed to be worth once this one is found to be worth so much."""
        mode = self[name]
        others = {other: known.worth for other, known in self.items() if other != name}
        # With fewer jobs at once it is other jobs, turn by turn, that do more or less, and not the machine.
        if name == FEWER or worth <= 0 or mode.worth <= 0 or (mode.measured and not in_force):
            return others
        moves = [other for other in others if mode.measured or self._are_alike(name, other)]
        others |= {other: others[other] * worth / mode.worth for other in moves}
        if TURNS in others and not self[TURNS].measured:
            others[TURNS] = min(1.0, others[TURNS])  # by definition, if solo times are right
        return others

    def _are_alike(self, name: str, other: str) -> bool:
        """Whether forecasts of both are wrong by as much, as far as is known."""
        return not {name, other} & set(AS_MEASURED) and not self[other].measured
