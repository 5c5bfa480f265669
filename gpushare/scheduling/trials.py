"""What trying modes has cost, and may cost."""

from __future__ import annotations

TRIALS_SHARE = 0.01
LOOK_S, CLOSE_LOOK_S = 0.5, 0.05  # between two looks; while a verdict is near
ALLOWED_LATE_S = 0.05  # that a look may come late, as long as none came later


class TrialAccount:
    """Who asks before a trial, and during it, never loses more by trials than `TRIALS_SHARE` of the time that counts.

    What a mode lost that was taken for a wrong belief is no trial but counts, so that trials wait until it is paid for.
    How late looks may come is learned, so only the first one that is later than any before can find a little more.
    """

    def __init__(self) -> None:
        self.elapsed_s = self.lost_s = 0.0
        self._latest_s = ALLOWED_LATE_S

    def count(self, passed_s: float, *, on_trial: bool) -> None:
        """So long after the look before; no time counts in which fewer than two jobs were there."""
        self.elapsed_s += passed_s
        if on_trial:
            self._latest_s = max(self._latest_s, passed_s - CLOSE_LOOK_S)

    def lose(self, seconds: float) -> None:
        """Of what another mode would have done."""
        self.lost_s += seconds

    @property
    def left_s(self) -> float:
        """What may still be lost; below nought after a mode was taken for a belief that was wrong."""
        return TRIALS_SHARE * self.elapsed_s - self.lost_s

    @property
    def until_next_look_s(self) -> float:
        """At most, in a trial: what it may lose before anybody sees it."""
        return CLOSE_LOOK_S + self._latest_s

    def affords(self, seconds: float) -> bool:
        """Whether as much may be lost, as it is expected, and what goes unseen beside."""
        return self.left_s >= seconds + self.until_next_look_s
