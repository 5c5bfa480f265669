"""Whether a thread stands still in one wait, as the kernel counts it."""

from __future__ import annotations

import re
import time

_FIELDS = re.compile(r"^State:\s+(\w).*^voluntary_ctxt_switches:\s+(\d+)", re.MULTILINE | re.DOTALL)


class Stillness:
    """Of a thread, by the kernel's number. To be asked again and again."""

    def __init__(self, native_id: int | None) -> None:
        self._path = f"/proc/self/task/{native_id}/status"
        self._seen: tuple[str, ...] = ()
        self._since_s = time.monotonic()

    def for_s(self) -> float:
        """How long it has slept without waking once; 0 if it is not known to."""
        seen, now_s = self._look(), time.monotonic()
        if seen != self._seen or not seen or seen[0] != "S":
            self._seen, self._since_s = seen, now_s
        return now_s - self._since_s

    def _look(self) -> tuple[str, ...]:
        try:
            with open(self._path, encoding="ascii", errors="replace") as file:
                found = _FIELDS.search(file.read())
        except OSError:
            return ()
        return found.groups() if found else ()
