"""The mode in force: for how many windows it has been, how it was taken, and whether it has become another one."""

from __future__ import annotations

from gpushare.scheduling.meter import Reading

_CHANGED = 0.15  # an efficiency that has moved by this share is that of other iterations
_FIRST_STAY, _LONGEST_STAY = 16, 256  # windows before another mode is tried again
_WINDOWS_OF_A_CHANGE = 4
_WINDOWS_OF_DOUBT = 6  # below 1, until it may be the mode in force that is slow, and not the machine


class Stay:
    """Of the jobs in a mode, from when it was taken.

    `fresh`: it was taken for what is believed of it, and `before` is the efficiency of the mode that was left for that.
    `left`: windows before another mode is tried, or one that is not new is taken. `turns`: that fewer jobs at once were
    there for since sharing was last measured.
    """

    def __init__(self) -> None:
        self.fresh = False
        self.before: float | None = None
        self.windows = self.left = self.turns = 0
        self._length = _FIRST_STAY
        self._reference = 0.0  # its efficiency when it was taken
        self._low = 0  # windows of late in which it had less than turns by their definition
        self._unlike = False  # the next window is not to be put together with those before it

    def begin(self, *, fresh: bool, another: bool) -> None:
        """The mode was taken; `another` one than before."""
        self._unlike = self._unlike or another
        self.fresh = fresh
        self.windows, self._low, self._reference = 0, 0, 0.0
        self.turns = 0 if another else self.turns

    def forget(self) -> None:
        """The jobs are others: any mode may be tried soon."""
        self._length, self.left, self.before = _FIRST_STAY, 0, None

    def lengthen(self) -> None:
        """Another mode was not better, or was taken: the next one is tried later."""
        self.left, self._length = self._length, min(2 * self._length, _LONGEST_STAY)

    def disturb(self) -> None:
        """All stood still for a window."""
        self._unlike = True

    def has_changed(self, reading: Reading) -> bool:
        """Whether that is so far from what the mode did at first that the jobs are others."""
        moved = abs(reading.measured - self._reference)
        surely = moved > _CHANGED * self._reference + reading.doubt
        return surely and self.windows >= _WINDOWS_OF_A_CHANGE

    def is_alone(self, changed: bool) -> bool:
        """Whether a window that is full now is not to be put together with the one before."""
        return changed or self._unlike

    def count(self, reading: Reading, *, alone: bool, changed: bool) -> None:
        """A full window."""
        if changed:
            self.windows, self._length, self.left = 0, _FIRST_STAY, 0
        if alone or not self._reference:
            self._reference = reading.measured
        self._unlike = changed  # that came about in the middle of a window
        self.fresh = False
        self.windows += 1
        self.left = max(0, self.left - 1)

    def is_low(self, low: bool) -> bool:
        """Whether it has been low for so long that it is not the machine; told once in a window."""
        self._low = self._low + 1 if low else 0
        return self._low >= _WINDOWS_OF_DOUBT
