"""The rows of a part as they come, as JSON and as Markdown, and a table of them for the terminal."""

import dataclasses
import os
import shutil
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

from .runner import Row

ROOT = Path(__file__).parent.parent.parent


class Report:
    """Of one part, which is to have `expected` rows."""

    def __init__(self, title: str, expected: int) -> None:
        self._title, self.expected = title, expected
        self.rows: list[Row] = []

    @property
    def all_checked(self) -> bool:
        return len(self.rows) == self.expected and all(row.verdict != "not checked" for row in self.rows)

    def summary(self) -> str:
        counts = Counter(row.verdict for row in self.rows)
        told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in ("true", "false", "not checked"))
        left = self.expected - len(self.rows)
        return told + (f", {left} not reached" if left else "")

    def content(self) -> list[dict[str, Any]]:
        """All rows, as JSON has them; their logs have a file of their own."""
        rows = [dataclasses.asdict(row) for row in self.rows]
        return [{name: value for name, value in row.items() if name != "log"} for row in rows]

    def markdown(self) -> str:
        """All rows, below a heading."""
        table = ["| name | verdict | statement | measured | s |", "|---|---|---|---|---|"]
        for row in self.rows:
            cells = (row.name, verdict(row), row.statement, figures(row.figures), f"{row.seconds:.1f}")
            table.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        return "\n".join([f"## {self._title}", "", self.summary(), "", *table, ""])


def replace(folder: Path, name: str, text: str) -> None:
    """The file as a whole: nobody sees half of it. Paths are the tree's, wherever that lies."""
    unfinished = folder / f".{name}.new"
    unfinished.write_text(text.replace(f"{ROOT}/", ""))
    os.replace(unfinished, folder / name)


def verdict(row: Row) -> str:
    """With the claims that do not hold, or why it was not checked."""
    failed = [what for what, holds in row.claims.items() if not holds]
    if row.verdict == "not checked":
        also = f" (not so: {'; '.join(failed)})" if failed else ""
        return f"not checked: {row.why}{also}"
    return row.verdict + (f": not so: {'; '.join(failed)}" if failed else "")


def figures(values: dict[str, Any]) -> str:
    return "; ".join(f"{name} {figure(value)}" for name, value in values.items())


def figure(value: Any) -> str:
    """Floats with four digits; dictionaries and lists with theirs."""
    if isinstance(value, bool) or not isinstance(value, float | dict | list):
        return str(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {figure(one)}" for key, one in value.items()) + "}"
    return "[" + ", ".join(figure(one) for one in value) + "]"


def table(rows: list[Row]) -> str:
    """For the terminal: a line per row with its verdict, and its figures below it."""
    width = max(60, shutil.get_terminal_size((110, 24)).columns)
    lines = []
    for row in rows:
        lines.append(f"{row.name:<44} {row.verdict:<12} {row.seconds:6.1f} s")
        below = [row.statement, figures(row.figures)]
        below += [verdict(row)] if row.verdict != "true" else []
        for text in below:
            lines += textwrap.wrap(text, width, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)
