"""The end of `gpushare run`: what is kept, and what is told."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from gpushare.commands import common, contention
from gpushare.launcher import explain as explained
from gpushare.launcher.run import Run
from gpushare.profiles import store
from gpushare.views.explain import render_waits
from gpushare.views.summary import build_summary, render_summary


def keep_profiles(work: Run) -> None:
    """Save the profiles of jobs that ended well, with how many iterations they did."""
    for index, profile in work.profiles.items():
        result = work.results[index]
        if result.status == "ok" and result.account:
            iterations = work.telemetry.job(result.account).iterations or None
            store.save(work.keys[index], replace(profile, iterations=iterations))


def tell(runs: Sequence[Run], console: common.Console, summary_file: Path | None) -> None:
    """Print the summary of each host, and write them all to the file: restarts under `restarts` of the first."""
    first, *later = [_summary(work) for work in runs]
    for number, summary in enumerate([first, *later]):
        title = f"restart {number}\n" if number else ""
        common.to_stdout(partial(_show, title, summary, console), "the summary")
    if later:
        first["restarts"] = later
    if summary_file:
        try:
            summary_file.write_text(json.dumps(first, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            print(f"gpushare: the summary was not written: {error}", file=sys.stderr)


def explain(runs: Sequence[Run], console: common.Console) -> None:
    """Print who waited for whom in each host, and write each wait beside its logs."""
    for work in runs:
        waits, names = work.waits(), [result.name for result in work.results]
        common.to_stdout(partial(render_waits, waits, names, console), "the waits")
        path = work.log_directory / explained.NAME
        try:
            explained.write(path, waits, names, work.telemetry.pool().start_ns)
            print(f"gpushare: each wait is in {path}", file=sys.stderr)
        except OSError as error:
            print(f"gpushare: the waits were not written: {error}", file=sys.stderr)


def _show(title: str, summary: dict[str, Any], console: common.Console) -> None:
    print(title, end="")
    render_summary(summary, console)


def _summary(work: Run) -> dict[str, Any]:
    plan = work.plan
    summary = build_summary(
        work.telemetry,
        work.results,
        policy=plan.policy,
        budget_bytes=plan.budget_bytes,
        device=plan.device.described,
        yields=work.yields,
        duration_s=work.duration_s,
    )
    factor = contention.learn_from(work)
    if work.budget_bytes != plan.budget_bytes:
        summary["budget_at_end_bytes"] = work.budget_bytes
    return {**summary, "scheduler_cpu_s": work.scheduler_cpu_s, "pair_factor": factor}
