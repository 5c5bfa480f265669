"""A plan for reading: its jobs, a table of policies, and the pool over time as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpushare.jobs import FIFO
from gpushare.units import format_bytes, format_seconds
from gpushare.views.pool import held_over_time, pool_picture

_HEIGHT, _ITERATIONS_SHOWN, _MESSAGES, _PAIRS, _QUEUED = 10, 5, 3, 6, 8
_SURELY = 7 / 8  # of the budget is for jobs, whatever is kept free for wrong forecasts
_WIDEST = 1000  # of a table that is measured, not printed
_HEADINGS = (
    "run",
    "time",
    "of\nserial",
    "STP",
    "ANTT",
    "waiting",
    "longest\nwait",
    "shift",
    "pool\npeak",
    "at once\nfrom",
    "none waits\nfrom",
)
_FIRST_HALF = 7  # of these, where the terminal is too narrow for all


def render_plan(plan: dict[str, Any], console: Console, *, picture_of: str | None) -> None:
    """Print the report of `simulation.report`.

    :param picture_of: the policy to draw, and to tell of for each job; None for neither.
    """
    console.print(_jobs(plan))
    console.print(
        f"peaks sum to {format_bytes(plan['solo_peaks_sum_bytes'])}; budget {format_bytes(plan['budget_bytes'])}; "
        f"one after the other {format_seconds(plan['serial_s'])}",
        highlight=False,
        soft_wrap=True,
    )
    for line in _rules(plan):
        console.print(line, highlight=False, soft_wrap=True)
    console.print()
    render_policies(plan, console)
    for line in _factors(plan):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for line in _messages(plan, picture_of):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if picture_of:
        console.print()
        console.print(f"the jobs under {picture_of}:", highlight=False)
        console.print(_outcomes(plan["policies"][picture_of]["jobs"]))
        for line in _queued(plan, picture_of):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        console.print()
        render_pool(plan, picture_of, console)
    if plan["sweep"]:
        console.print()
        render_sweep(plan, console, picture_of)


def _rules(plan: dict[str, Any]) -> list[str]:
    lines = []
    if plan["order"] != FIFO:
        priorities = [f"{job['name']} {job['priority']}" for job in plan["jobs"] if job["priority"]]
        lines.append(
            f"who goes first: {plan['order']}" + (f" ({', '.join(priorities)})" if priorities else "")
        )
    if plan["split_bytes"]:
        lines.append(f"waterwave's segments: {format_bytes(plan['split_bytes'])}")
    return lines


def render_pool(plan: dict[str, Any], policy: str, console: Console) -> None:
    """Print the pool's first moments under one policy."""
    names = [job["name"] for job in plan["jobs"]]
    found = plan["policies"][policy]
    shown_s = min(found["duration_s"], _shown_s(plan))
    width = max(20, min(console.width, 110) - 14)
    columns = held_over_time(found["timeline"], len(names), shown_s, width)
    console.print(f"the pool under {policy}, the first {format_seconds(shown_s)}:", highlight=False)
    coloured = console.color_system is not None and not console.no_color
    picture = pool_picture(
        columns, names, plan["budget_bytes"], height=_HEIGHT, span_s=shown_s, coloured=coloured
    )
    for line in picture:
        console.print(line, no_wrap=True, overflow="crop")


def _shown_s(plan: dict[str, Any]) -> float:
    """Some iterations of the slowest job, once all jobs have arrived."""
    arrived_s = max(float(job["arrival_s"]) for job in plan["jobs"])
    return arrived_s + _ITERATIONS_SHOWN * max(float(job["iteration_s"]) for job in plan["jobs"])


def render_sweep(plan: dict[str, Any], console: Console, drawn_policy: str | None) -> None:
    """Print throughput over the budget; that of one policy as bars."""
    sweep = plan["sweep"]
    policies = sorted(sweep["stp"], key=lambda policy: policy == drawn_policy)
    table = Table(
        box=None, pad_edge=False, header_style="bold", title="STP over the budget", title_justify="left"
    )
    table.add_column("budget", justify="right")
    table.add_column("of all peaks", justify="right")
    for policy in policies:
        table.add_column(policy, justify="right")
    table.add_column(policies[-1] if len(policies) > 1 else "")
    drawn = sweep["stp"][policies[-1]]
    for i, budget in enumerate(sweep["budget_bytes"]):
        cells = [_throughput(sweep, policy, i, len(plan["jobs"])) for policy in policies]
        share = f"{budget / max(1, plan['solo_peaks_sum_bytes']):.2f}"
        bar = Text("█" * round(drawn[i] / max(1e-9, *drawn) * 30), style="cyan")
        table.add_row(format_bytes(budget), share, *cells, bar)
    console.print(table)


def _throughput(sweep: dict[str, Any], policy: str, i: int, jobs: int) -> str:
    ended = sweep["ended"][policy][i]
    return f"{sweep['stp'][policy][i]:.2f}" + ("" if ended == jobs else f" ({ended} of {jobs})")


def _jobs(plan: dict[str, Any]) -> Table:
    table = _of_jobs("peak", "residue", "iteration", "iterations", "threads")
    for job in plan["jobs"]:
        table.add_row(
            job["name"],
            format_bytes(job["peak_bytes"]),
            format_bytes(job["residue_bytes"]),
            format_seconds(job["iteration_s"]),
            str(job["iterations"]),
            f"{job['threads']:.3g}",
        )
    return table


def _of_jobs(*headings: str) -> Table:
    """An empty table with a row for each job: long names take more lines, and none is cut off."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("job", overflow="fold")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "fits" else "right", no_wrap=True)
    return table


def _outcomes(jobs: list[dict[str, Any]]) -> Table:
    """What becomes of each job under one policy."""
    table = _of_jobs("fits", "shift", "waits\nat doors", "waits for\nmemory", "longest\nwait", "slowdown")
    for job in jobs:
        table.add_row(
            job["name"],
            "yes" if job["status"] == "ok" else f"no: {job['status']}",
            format_seconds(job["time_shift_s"]),
            format_seconds(job["door_wait_s"]),
            format_seconds(job["memory_wait_s"]),
            format_seconds(job["longest_wait_s"]),
            _number(job["slowdown"]),
        )
    return table


def _queued(plan: dict[str, Any], policy: str) -> list[str]:
    """Why some jobs are not begun at once."""
    jobs = [job for job in plan["policies"][policy]["jobs"] if job["queued_s"]]
    names = [f"{job['name']} ({format_seconds(job['queued_s'])})" for job in jobs]
    if not names:
        return []
    needs = [(job["residue_bytes"], job["peak_bytes"]) for job in plan["jobs"]]
    keep_bytes = sum(residue for residue, _ in needs)
    beyond_bytes = max(peak - residue for residue, peak in needs)
    shown = names if len(names) <= _QUEUED else [*names[: _QUEUED - 1], f"{len(names) - _QUEUED + 1} more"]
    if keep_bytes + beyond_bytes <= plan["budget_bytes"] * _SURELY:
        return [
            f"in the queue until others have ended: {', '.join(shown)}; all jobs would fit, but fewer at once do more"
        ]
    return [
        f"in the queue until others have ended: {', '.join(shown)}; all jobs would keep {format_bytes(keep_bytes)} "
        f"between iterations, one of them needs up to {format_bytes(beyond_bytes)} beside that, and the budget is "
        f"{format_bytes(plan['budget_bytes'])}, of which some is kept free for wrong forecasts"
    ]


def render_policies(plan: dict[str, Any], console: Console) -> None:
    """Print a row for each policy; in two halves, one below the other, where the rows are too long."""
    every = range(len(_HEADINGS))
    whole = _policies(plan, every)
    if console.measure(whole, options=console.options.update(width=_WIDEST)).maximum <= console.width:
        console.print(whole)
        return
    console.print(_policies(plan, every[:_FIRST_HALF]))
    console.print()
    console.print(_policies(plan, every[_FIRST_HALF:]))


def _policies(plan: dict[str, Any], columns: Sequence[int]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("policy", no_wrap=True)
    for heading in (_HEADINGS[column] for column in columns):
        table.add_column(heading, justify="left" if heading == "run" else "right", no_wrap=True)
    for policy, found in plan["policies"].items():
        cells = _figures(found)
        table.add_row(policy, *(cells[column] for column in columns))
    return table


def _figures(found: dict[str, Any]) -> tuple[str, ...]:
    """Of a policy, one for each of `_HEADINGS`."""
    jobs = found["jobs"]
    shifts = [job["time_shift_s"] for job in jobs if job["time_shift_s"] is not None]
    return (
        _who_ended(jobs),
        format_seconds(found["duration_s"] if found["all_ok"] else None),
        _number(found["over_serial"]),
        _number(found["stp"]),
        _number(found["antt"]),
        format_seconds(sum(job["queued_s"] + job["door_wait_s"] + job["memory_wait_s"] for job in jobs)),
        format_seconds(max(job["longest_wait_s"] for job in jobs)),
        format_seconds(sum(shifts) / len(shifts) if shifts else None),
        format_bytes(found["pool_peak_bytes"]),
        _budget(found["all_run_from_bytes"]),
        _budget(found["nothing_waits_from_bytes"]),
    )


def _who_ended(jobs: list[dict[str, Any]]) -> str:
    ended = sum(job["status"] == "ok" for job in jobs)
    return f"all {ended}" if ended == len(jobs) else f"{ended} of {len(jobs)}"


def _budget(smallest_bytes: int | None) -> str:
    return format_bytes(smallest_bytes) if smallest_bytes else "never"


def _factors(plan: dict[str, Any]) -> list[str]:
    """How much longer each takes beside the other, and how that is known; what is only assumed in one line."""
    if given := [pair for pair in plan["pairs"] if pair["source"] == "given"]:
        return [f"beside each other {given[0]['factor']:.2f} times slower each (given)"]
    names = [job["name"] for job in plan["jobs"]]
    told = [pair for pair in plan["pairs"] if pair["source"] != "default"]
    told.sort(key=lambda pair: -max(pair["factor"], pair["factor_of_second"]))
    lines = [_factor(pair, names) for pair in told[:_PAIRS]]
    if len(told) > _PAIRS:
        lines.append(f"and {len(told) - _PAIRS} more pairs with smaller factors")
    if len(told) < len(plan["pairs"]):
        rest = "all pairs" if not told else "the other pairs"
        lines.append(
            f"{rest} are taken not to slow each other down but for cores: no run has shown it, and "
            "`gpushare profile` has not measured both"
        )
    return lines


def _factor(pair: dict[str, Any], names: list[str]) -> str:
    first, second = names[pair["first"]], names[pair["second"]]
    if pair["source"] == "learned":
        runs = f"{pair['runs']} run{'' if pair['runs'] == 1 else 's'}"
        return f"{first} beside {second}: {pair['factor']:.2f} times slower each (learned from {runs})"
    others = f"{pair['others']} other pair{'' if pair['others'] == 1 else 's'}"
    if pair["source"] == "others":
        return f"{first} beside {second}: {pair['factor']:.2f} times slower each (as runs of {others} have shown)"
    besides = f", and {pair['rest']:+.2f} as runs of {others} have shown" if pair["others"] else ""
    return (
        f"{first} beside {second}: {pair['factor']:.2f} times slower, {second} {pair['factor_of_second']:.2f} (by what "
        f"each takes of the GIL and of memory bandwidth{besides})"
    )


def _messages(plan: dict[str, Any], drawn_policy: str | None) -> list[str]:
    """Why jobs do not end well: all of them under the policy that is drawn, some under the others; what is so under
    several policies once."""
    lines: dict[str, list[str]] = {}
    for policy, found in plan["policies"].items():
        failed = [job for job in found["jobs"] if job["message"]]
        shown = len(failed) if policy == drawn_policy else _MESSAGES
        for job in failed[:shown]:
            told = f"{job['name']}: {job['message'].removeprefix('gpushare: ')}"
            lines.setdefault(told, []).append(policy)
        if len(failed) > shown:
            lines.setdefault(f"and {len(failed) - shown} more", []).append(policy)
    return [f"{', '.join(policies)}: {told}" for told, policies in lines.items()]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
