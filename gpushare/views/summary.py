"""The end of a run, for reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from gpushare.units import format_bytes, format_seconds

_MUCH = 0.1  # of a job's time
_LITTLE = 0.01  # of a job's time, or of its waits: not told
_WIDE = 78  # columns of a terminal that has room for shifts beside short names
_UNEVEN = 0.02  # a yield this far from the efficiency is one that the jobs share unevenly


def render_summary(summary: dict[str, Any], console: Console) -> None:
    """Print what `figures.build_summary` has made."""
    console.print(_table(summary["jobs"], shifts=console.width >= _WIDE))
    for job in summary["jobs"]:
        if text := _waits(job):
            console.print(text, markup=False, highlight=False, soft_wrap=True)
        if text := _gil_waits(job):
            console.print(text, markup=False, highlight=False, soft_wrap=True)
        if job["message"]:
            console.print(f"{job['name']}: {job['message']}", markup=False, highlight=False, soft_wrap=True)
        if job["memory"]["bad_frees"]:
            console.print(_bad_frees(job), markup=False, highlight=False, soft_wrap=True)
    if text := _beside_the_gpu(summary):
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    console.print(
        f"{_peaks(summary)}budget {format_bytes(summary['budget_bytes'])}{_changed(summary)}; the pool's peak was "
        f"{format_bytes(summary['pool_peak_bytes'])}",
        highlight=False,
        soft_wrap=True,
    )
    console.print(_times(summary), highlight=False, soft_wrap=True)


def _table(jobs: Sequence[Mapping[str, Any]], *, shifts: bool) -> Table:
    """:param shifts: whether there is room for them."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    headings = ["job", "status", "iterations", "time", "peak alone", "peak here", "shift", "forecast"]
    columns = len(headings) - (0 if shifts else 2)
    for heading in headings[:columns]:
        table.add_column(heading, justify="left" if heading in ("job", "status") else "right")
    for job in jobs:
        cells = [
            job["name"],
            _status(dict(job)),
            str(job["iterations"]),
            format_seconds(job["duration_s"]),
            format_bytes(job["solo_peak_bytes"]),
            format_bytes(job["held_peak_bytes"]),
            format_seconds(job["time_shift_s"]),
            format_seconds(job["predicted_time_shift_s"]),
        ]
        table.add_row(*cells[:columns])
    return table


def _beside_the_gpu(summary: dict[str, Any]) -> str | None:
    """Jobs that went well and had nothing on the run's GPU: perhaps they are scripts for the CPU."""
    if summary["device"] == "cpu":
        return None
    names = [job["name"] for job in summary["jobs"] if job["status"] == "ok" and not job["held_peak_bytes"]]
    if not names:
        return None
    return (
        f"nothing was held on {summary['device']} by {', '.join(names)}: what a job has on the CPU is outside the "
        "budget; --device cpu makes that the budget's"
    )


def _peaks(summary: dict[str, Any]) -> str:
    """What jobs need alone; of who never iterated that is not known."""
    known = {
        job["name"]: job["solo_peak_bytes"] for job in summary["jobs"] if job["solo_peak_bytes"] is not None
    }
    unknown = [job["name"] for job in summary["jobs"] if job["name"] not in known]
    if not known:
        return ""
    but = f" without {', '.join(unknown)}" if unknown else ""
    return f"peaks alone sum to {format_bytes(sum(known.values()))}{but}; "


def _changed(summary: dict[str, Any]) -> str:
    """`gpushare budget` did."""
    at_end = summary.get("budget_at_end_bytes")
    return f" ({format_bytes(at_end)} at the end)" if at_end else ""


def _times(summary: dict[str, Any]) -> str:
    serial = summary["serial_estimate_s"]
    text = f"all took {format_seconds(summary['duration_s'])} ({summary['policy']}{_on(summary)})"
    if stopped_s := summary.get("stopped_s"):
        text += (
            f", {format_seconds(stopped_s)} of it stopped by Ctrl-Z, which the jobs' times have in them too"
        )
    if serial and len(summary["jobs"]) > 1:
        text += f"; one after the other would take about {format_seconds(serial)}"
    if summary["overlap_s"]:
        text += (
            f"; iterations of two jobs or more advanced together for {format_seconds(summary['overlap_s'])}"
        )
    if times := sum(job["copies_out"] for job in summary["jobs"]):
        how_often = "once" if times == 1 else f"{times} times"
        text += f"; {how_often} the memory of a job that waited was copied out for another"
    return text + _longest_wait(summary["jobs"]) + _modes(summary["modes"] or {})


def _longest_wait(jobs: Sequence[Mapping[str, Any]]) -> str:
    """Of any job; nothing where nobody has waited for long, as in the jobs' own lines."""
    waiter = max(jobs, key=lambda job: float(job["longest_wait_s"]), default=None)
    if waiter is None or not any(_waits(dict(job)) for job in jobs):
        return ""
    return f"; the longest wait was {format_seconds(waiter['longest_wait_s'])} ({waiter['name']})"


_MODE_WORDS = {"temporal": "in turns", "groups": "some in turns", "fewer": "fewer at once"}


def _modes(modes: Mapping[str, Mapping[str, float | None]]) -> str:
    """In which mode the jobs ran; nothing where there was no other one."""
    if len(modes) < 2:
        return ""
    return "; " + ", ".join(
        f"{_MODE_WORDS.get(name, f'by {name}')} for {format_seconds(mode['seconds'])}{_pace(mode)}"
        for name, mode in modes.items()
    )


def _pace(mode: Mapping[str, float | None]) -> str:
    if mode["pace"] is None or mode["yield"] is None or mode["efficiency"] is None:
        return ""
    uneven = abs(mode["yield"] - mode["efficiency"]) >= _UNEVEN
    by_that = f" (efficiency {mode['efficiency']:.2f} when last measured)" if uneven else ""
    return f" at {mode['pace']:.2f} times the pace of one after the other{by_that}"


def _waits(job: dict[str, Any]) -> str | None:
    """What a job waited for in all, the longest first; None if that is little."""
    longest = sorted(job["waited_s"].items(), key=lambda item: -item[1])
    total_s = sum(job["waited_s"].values())
    if not total_s or total_s < _LITTLE * (job["duration_s"] or 0):
        return None
    parts = ", ".join(f"{word} {format_seconds(s)}" for word, s in longest if s > _LITTLE * total_s)
    longest_s = format_seconds(job["longest_wait_s"])
    text = f"{job['name']} waited {format_seconds(total_s)}, at most {longest_s} at a time: {parts}"
    return text if job["forecast_error_s"] is None else f"{text}; {_forecast(job)}"


def _gil_waits(job: dict[str, Any]) -> str | None:
    waited_s = job["gil_wait_s"]
    if not waited_s or waited_s < _MUCH * (job["duration_s"] or 0):
        return None
    return f"{job['name']} waited {format_seconds(waited_s)} for Python's lock (GIL), which the jobs of a run share"


def _forecast(job: dict[str, Any]) -> str:
    waits, error_s = job["waits_forecast"], format_seconds(job["forecast_error_s"])
    if waits == 1:
        return f"one wait was forecast, wrong by {error_s}"
    return f"{waits} waits were forecast, wrong by {error_s} on the mean"


def _on(summary: dict[str, Any]) -> str:
    return "" if summary["device"] == "cpu" else f", {summary['device']}"


def _bad_frees(job: dict[str, Any]) -> str:
    times = job["memory"]["bad_frees"]
    return f"{job['name']} freed what was no block of memory, {times} times; --debug-memory tells more"


def _status(job: dict[str, Any]) -> str:
    code = job["exit_code"]
    return f"{job['status']} ({code})" if code else str(job["status"])
