"""Who waited for whom, why and how long: the table behind `--explain`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean

from rich.console import Console
from rich.table import Table

from gpushare.telemetry.decisions import REASONS, Wait
from gpushare.units import format_seconds


def render_waits(waits: Iterable[Wait], names: Sequence[str], console: Console) -> None:
    """One line for each job, whom it waited for and why; the longest sum first."""
    groups: dict[tuple[int, int, int, str], list[Wait]] = defaultdict(list)
    for wait in waits:
        groups[wait.account, wait.for_account, wait.reason, wait.place].append(wait)
    if not groups:
        console.print("no job waited")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("job", "waited for", "at", "waits", "in all", "longest", "forecast error", "because"):
        table.add_column(heading, justify="left" if heading in _TEXTS else "right")
    for (account, other, reason, place), group in sorted(groups.items(), key=lambda g: -_sum_s(g[1])):
        table.add_row(
            _name(account, names),
            _name(other, names),
            place,
            str(len(group)),
            format_seconds(_sum_s(group)),
            format_seconds(max(w.waited_ns for w in group) / 1e9),
            _error(group),
            REASONS[reason][1],
        )
    console.print(table)


_TEXTS = ("job", "waited for", "at", "because")


def _sum_s(group: Sequence[Wait]) -> float:
    return sum(wait.waited_ns for wait in group) / 1e9


def _error(group: Sequence[Wait]) -> str:
    """Mean distance between forecast and wait; a dash where the curves could forecast nothing."""
    errors = [abs(w.waited_ns - w.predicted_ns) / 1e9 for w in group if w.predicted_ns is not None]
    return format_seconds(fmean(errors)) if errors else "-"


def _name(account: int, names: Sequence[str]) -> str:
    return names[account - 1] if 0 < account <= len(names) else "-"
