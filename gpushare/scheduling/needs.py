"""What jobs that have begun need, as far as it was measured."""

from __future__ import annotations

from gpushare.native import doors, usage
from gpushare.scheduling.admission import Need


class Needs:
    """By account. A curve is read again only when it has changed: the queue asks twice a second. From any thread."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, Need]] = {}  # with the curve's version

    @staticmethod
    def are_known(account: int) -> bool:
        """Whether the job has a profile, saved or measured."""
        return doors.curve_version(account) is not None

    def __call__(self, account: int) -> Need:
        """Before its profile, what the job holds now, or will when it is back, if it was copied out."""
        known = self._known.get(account)
        if known and known[0] == doors.curve_version(account):
            return known[1]
        curve = doors.curve_get(account)
        if curve is None:
            memory = usage.memory(account)
            keeps_bytes = memory.held_bytes + memory.copied_out_bytes
            return Need(keeps_bytes, keeps_bytes)
        need = Need.of_curve(curve.held_bytes, curve.residue_bytes)
        self._known[account] = curve.version, need
        return need
