"""A row of the results, and how it is measured."""

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

NOT_YET, NO_TIME = "not reached yet", "no time left"
UNDER_WAY = "it was cut off in the middle"  # what stands there until it ends


class NotMeasured(Exception):
    """What ended a measurement; the text says why."""


class NoTimeLeft(NotMeasured):
    """The benchmark's own limit."""

    def __init__(self) -> None:
        super().__init__(NO_TIME)


@dataclass
class Row:
    """Seconds, bytes, counts and ratios; `claims` that hold or not; `notes` on parts that could not be measured.

    `commands` are those that the row rests on, with `DIR` for the folder of a command's files. `why` tells why the row
    was not measured, and is empty where it was.
    """

    kind: str
    name: str
    what: str
    why: str = NOT_YET
    figures: dict[str, float] = field(default_factory=dict)
    claims: dict[str, bool] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def part(self, name: str, measure: Callable[[], None]) -> None:
        """A part that the rest of the row can do without: a note says why there is none."""
        try:
            measure()
        except NotMeasured as error:
            self.notes.append(f"{name}: {error}")

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class Task:
    """A row that is to be measured: `measure` fills it in, or raises NotMeasured."""

    kind: str
    name: str
    what: str
    measure: Callable[[Row], None]

    def empty(self) -> Row:
        return Row(self.kind, self.name, self.what)

    def fill(self, row: Row) -> None:
        """What was found before a failure is kept."""
        begun = time.monotonic()
        row.why = UNDER_WAY
        try:
            self.measure(row)
            row.why = ""
        except NotMeasured as error:
            row.why = str(error)
        except Exception as error:  # what nobody foresaw must not end the rows after it
            row.why = f"{type(error).__name__}: {error}"
        row.seconds = round(time.monotonic() - begun, 1)
