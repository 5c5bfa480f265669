"""Runs parts one after the other, each within its time, and all within the whole's."""

import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from .overview import Overview
from .parts import BUILD, Given, Part
from .processes import NO_TIME
from .report import Report, table
from .runner import Row

LEAST_S = 1.0  # a part that has less only says so


class Clock:
    """Until when a part may run. One that ends early leaves its time to those behind it, the last gets what is left."""

    def __init__(self, parts: list[Part], limits: dict[str, float], total_s: float) -> None:
        self._limits, self._last = limits, parts[-1].name
        self._planned = time.monotonic()
        self._end = self._planned + total_s

    def deadline(self, part: Part) -> float:
        """An own limit that was asked for counts from its beginning."""
        self._planned += self._limits.get(part.name, part.limit_s)
        if part.name in self._limits:
            return min(self._end, time.monotonic() + self._limits[part.name])
        unbounded = self._end == float("inf")
        return self._end if part.name == self._last and not unbounded else min(self._end, self._planned)


def run(
    parts: list[Part], header: dict[str, Any], given: Given, limits: dict[str, float], total_s: float
) -> bool:
    """Whether all could be checked. What is needed is built once, before the first part that needs it."""
    parts = _with_build(parts)
    clock = Clock(parts, limits, total_s)
    overview = Overview(given.out, header, [part.name for part in parts])
    why = ""
    for part in parts:
        rows = _run_part(part, given, clock.deadline(part), why if part.builds else "", overview)
        if part is BUILD and rows[0].verdict != "true":
            why = f"the shim was not built, see {rows[0].name}"
    print(f"\n{overview.table()}\n\nwritten to {given.out / 'check'}.md and .json", flush=True)
    return overview.all_checked


def _with_build(parts: list[Part]) -> list[Part]:
    first = next((index for index, part in enumerate(parts) if part.builds), len(parts))
    return [*parts[:first], *([BUILD] if first < len(parts) else []), *parts[first:]]


def _run_part(part: Part, given: Given, deadline: float, why: str, overview: Overview) -> list[Row]:
    begin = time.monotonic()
    print(f"\n== {part.name}: {max(0.0, deadline - begin):.0f} s", flush=True)
    expected, start = _begun(part, given, deadline)
    report = Report(part.title, expected)
    overview.begin(part.name, report)
    why = why or (NO_TIME if _is_over(deadline) else "")
    for row in _surely(part, start(deadline, why)):
        report.rows.append(row)
        overview.write(part.name, time.monotonic() - begin)
        print(f"{row.verdict:<12} {row.seconds:6.1f} s  {row.name}", flush=True)
    print(f"\n{table(report.rows)}\n\n{report.summary()}", flush=True)
    return report.rows


def _is_over(deadline: float) -> bool:
    return deadline - time.monotonic() < LEAST_S


def _begun(part: Part, given: Given, deadline: float) -> tuple[int, Callable[[float, str], Iterator[Row]]]:
    """As the part says; one row where there is no time to ask it, or with the error, if it can't count its rows."""
    try:
        if not _is_over(deadline):
            return part.start(given, deadline)
        row = Row(part.name, part.title, why=NO_TIME)
    except Exception as error:
        traceback.print_exc()
        row = _fault(part, error)
    return 1, lambda _deadline, _why: iter([row])


def _surely(part: Part, rows: Iterator[Row]) -> Iterator[Row]:
    """An error in the check itself is a row too: the parts behind it still run."""
    try:
        yield from rows
    except Exception as error:
        traceback.print_exc()
        yield _fault(part, error)


def _fault(part: Part, error: Exception) -> Row:
    return Row(
        f"{part.name}_itself", "the check has no fault of its own", why=f"{type(error).__name__}: {error}"
    )
