"""Results as they come: both files, so that a run that is cut short leaves what was measured."""

from typing import Any

from common import save

from .row import Row

HEADING = ["row", "figure", "value"]


class Results:
    """Writes NAME.json and NAME.md with all rows, those that were not reached yet among them, and what `about` says of
    the machine."""

    def __init__(self, name: str, command: str, rows: list[Row], about: dict[str, Any] | None = None) -> None:
        self._name, self._command, self._rows, self._about = name, command, rows, about

    def write(self) -> str:
        """What the Markdown says."""
        table: list[list[Any]] = [HEADING]
        for row in self._rows:
            table += lines(row)
        return save(self._name, self._command, [row.to_json() for row in self._rows], table, self._about)


def lines(row: Row) -> list[list[Any]]:
    """Of the table: why it was not measured, figures, claims, notes, commands."""
    found: list[tuple[str, str]] = [("not measured", row.why)] if row.why else []
    found += [(name, shown(name, value)) for name, value in row.figures.items()]
    found += [(name, "true" if holds else "FALSE") for name, holds in row.claims.items()]
    found += [("note", note) for note in row.notes]
    found += [("command", f"`{command}`") for command in row.commands]
    return [[row.name, name, value.replace("|", "\\|")] for name, value in found]


def shown(name: str, value: float) -> str:
    if name.endswith("_bytes"):
        return f"{value / 2**20:.0f} MiB"
    if isinstance(value, int):
        return str(value)
    return f"{value:.0f} ns" if name.endswith("_ns") else f"{value:.4g}"
