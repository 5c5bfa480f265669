"""What modes yielded in a run, for who tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpushare.scheduling.meter import Reading
from gpushare.scheduling.snapshot import FEWER, GROUPS, TURNS


@dataclass(frozen=True)
class ModeYield:
    """For how long jobs ran in a mode, and what was last measured of it; None if never.

    `pace`: solo seconds per second, of all that time. `measured`: the same of the windows that were last looked at.
    `efficiency`: that, by how evenly the jobs advance (`scheduling.efficiency`).
    """

    seconds: float
    pace: float
    measured: float | None
    efficiency: float | None


def mode_yield(seconds: float, done_s: float, reading: Reading | None) -> ModeYield:
    """Of a mode that jobs ran in for so long, and did work in that takes `done_s` alone."""
    pace = (
        max(0.0, done_s / seconds) if seconds > 0 else 0.0
    )  # a wrong guess may be taken back in another mode
    measured, efficiency = (reading.stp, reading.measured) if reading else (None, None)
    return ModeYield(seconds, pace, measured, efficiency)


@dataclass(frozen=True)
class Yields:
    """Of each mode that jobs have run in; the mode in force; what trials have lost, in seconds.

    `solo_s`: an iteration of each job alone, by account, as it was last counted.
    """

    modes: Mapping[str, ModeYield]
    mode: str | None
    lost_s: float
    solo_s: Mapping[int, float]

    @property
    def turns_s(self) -> float:
        """For how long jobs took turns."""
        return self.modes[TURNS].seconds if TURNS in self.modes else 0.0

    @property
    def best_sharing(self) -> float | None:
        """The best yield of the modes in which all share; None if none was measured."""
        sharing = (m for name, m in self.modes.items() if name not in (TURNS, GROUPS, FEWER))
        found = (m.measured for m in sharing if m.measured is not None)
        return max(found, default=None)

    def to_json(self) -> dict[str, Any]:
        """As the summary has it."""
        turns = self.modes.get(TURNS)
        return {
            "modes": {
                name: {
                    "seconds": m.seconds,
                    "pace": m.pace,
                    "yield": m.measured,
                    "efficiency": m.efficiency,
                }
                for name, m in self.modes.items()
            },
            "trials_lost_s": self.lost_s,
            "solo_s": {str(account): seconds for account, seconds in self.solo_s.items()},
            "turns_s": self.turns_s,
            "yield_side_by_side": self.best_sharing,
            "yield_in_turns": turns.measured if turns else None,
        }
