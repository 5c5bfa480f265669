"""All parts in check.md and check.json, replaced after every row, and the table that the terminal shows last.

failures.txt has in full what was said by the processes of rows that are not true. Three files have everything, so that
nothing is left behind where a machine gives back few.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from .report import Report, replace, verdict
from .runner import Row

VERDICTS = ("true", "false", "not checked")
NAME = "check"
FAILURES = "failures.txt"
SHOWN = 300  # characters of what a row says
LOG, LOGS = (
    1 << 16,
    1 << 20,
)  # characters of one row's log, its end, and of all: as much as can be brought away


class Overview:
    """Parts whose reports have begun, in order, and those that have not."""

    def __init__(self, folder: Path, header: dict[str, Any], parts: list[str]) -> None:
        self._folder, self._header = folder, header
        self._reports: dict[str, Report | None] = dict.fromkeys(parts)
        self._seconds = dict.fromkeys(parts, 0.0)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FAILURES).unlink(missing_ok=True)  # of an earlier run

    def begin(self, part: str, report: Report) -> None:
        self._reports[part] = report
        self.write()

    def write(self, part: str = "", seconds: float = 0.0) -> None:
        """With the seconds that a part has taken so far."""
        if part:
            self._seconds[part] = round(seconds, 1)
        told = {"header": self._header, "parts": [self._part(name) for name in self._reports]}
        replace(self._folder, f"{NAME}.json", json.dumps(told, indent=1) + "\n")
        replace(self._folder, f"{NAME}.md", self._markdown())
        if failures := self._failures():
            replace(self._folder, FAILURES, failures)

    @property
    def all_checked(self) -> bool:
        return all(report and report.all_checked for report in self._reports.values())

    def table(self) -> str:
        """A line for each part, and one for each row that is not true."""
        lines = [
            f"{'part':<8} {'true':>5} {'false':>5} {'not checked':>11} {'not reached':>11} {'seconds':>8}"
        ]
        for name in self._reports:
            counts = self._counts(name)
            cells = " ".join(
                f"{counts[what]:>{width}}" for what, width in zip(counts, (5, 5, 11, 11), strict=True)
            )
            lines.append(f"{name:<8} {cells} {self._seconds[name]:8.1f}")
        for name in self._reports:
            lines += [f"{name}: {row.name}: {verdict(row)[:SHOWN]}" for row in self._untrue(name)]
        if self._failures():
            lines += ["", f"what their processes said, in full: {self._folder / FAILURES}"]
        return "\n".join(lines)

    def _failures(self) -> str:
        """The logs of rows that are not true; nothing if there are none."""
        text = ""
        for name in self._reports:
            for row in (row for row in self._untrue(name) if row.log.strip()):
                one = f"=== {name}: {row.name}: {row.verdict}\n{row.log[-LOG:].rstrip()}\n\n"
                text += one if len(text) + len(one) < LOGS else f"=== {name}: {row.name}: no room left\n"
        return text

    def _counts(self, name: str) -> dict[str, int]:
        report = self._reports[name]
        if not report:
            return {**dict.fromkeys(VERDICTS, 0), "not reached": 0}
        counts = Counter(row.verdict for row in report.rows)
        return {what: counts[what] for what in VERDICTS} | {
            "not reached": max(0, report.expected - len(report.rows))
        }

    def _untrue(self, name: str) -> list[Row]:
        report = self._reports[name]
        rows = [row for row in report.rows if row.verdict != "true"] if report else []
        return sorted(rows, key=lambda row: VERDICTS.index(row.verdict))

    def _part(self, name: str) -> dict[str, Any]:
        rows = [
            {"name": row.name, "verdict": row.verdict, "told": verdict(row)} for row in self._untrue(name)
        ]
        report = self._reports[name]
        return {
            "name": name,
            "begun": report is not None,
            **self._counts(name),
            "seconds": self._seconds[name],
            "not true": rows,
            "rows": report.content() if report else [],
        }

    def _markdown(self) -> str:
        head = [f"- {key}: {value}" for key, value in self._header.items() if value is not None]
        lines = ["| part | true | false | not checked | not reached | s |", "|---|---|---|---|---|---|"]
        for name, report in self._reports.items():
            counts = self._counts(name).values() if report else ["not begun", "", "", ""]
            lines.append("| " + " | ".join(map(str, (name, *counts, self._seconds[name]))) + " |")
        rows = ["| part | row | what |", "|---|---|---|"]
        for name in self._reports:
            for row in self._untrue(name):
                cells = (name, row.name, verdict(row))
                rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        rows += ["", f"What their processes said, in full: {FAILURES}"] if self._failures() else []
        parts = [report.markdown() for report in self._reports.values() if report]
        return "\n".join(
            ["# The check of a GPU", "", *head, "", *lines, "", "Not true:", "", *rows, "", *parts]
        )
