"""The end of `gpushare run`: what is kept, and what is told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from gpushare.commands import common, contention
from gpushare.commands.interrupts import Interrupts
from gpushare.launcher import explain as explained
from gpushare.launcher.run import STOPPED, Run
from gpushare.native.library import NativeError
from gpushare.profiles import store
from gpushare.profiles.store import ProfileError
from gpushare.simulation import SimulationStuck
from gpushare.views.console import Console
from gpushare.views.explain import render_waits
from gpushare.views.figures import build_summary
from gpushare.views.summary import render_summary


def conclude(
    runs: Sequence[Run],
    summary_file: Path | None,
    interrupts: Interrupts,
    *,
    waits: bool,
) -> bool:
    """All of it, for a run and its restarts. `waits`: who waited for whom, too.

    :param interrupts: entered. Only what is learned of pairs of jobs is given up for them.
    :return: whether all files that were asked for are whole, those that were written while the jobs ran among them.
    """
    console = Console()
    for each in runs:
        _keep_profiles(each)
    whole = [_tell(runs, console, summary_file), not waits or _explain(runs, console)]
    whole.append(_learn(runs, summary_file if whole[0] else None, interrupts))  # what failed is told once
    return all(whole) and not any(work.incomplete for work in runs)


def _keep_profiles(work: Run) -> None:
    """Save the profiles of jobs that ended well, with how many iterations they did."""
    for index, profile in work.profiles.items():
        result = work.results[index]
        if index in work.stopped_profiles:
            new, stays = ("new ", ", its saved one stays") if work.plan.profiles[index] else ("", "")
            common.say(f"the {new}profile of {result.name} is not kept{stays}: {STOPPED}")
        elif result.status == "ok" and result.account:
            iterations = work.telemetry.job(result.account).iterations or None
            try:
                store.save(work.keys[index], replace(profile, iterations=iterations))
            except ProfileError as error:
                common.say(f"the profile of {result.name} is not kept: {error}")


def _tell(runs: Sequence[Run], console: Console, summary_file: Path | None) -> bool:
    """Print the summary of each host, and write them all to the file: restarts under `restarts` of the first.

    :return: whether they are there.
    """
    summaries = [_summary(work) for work in runs]
    written = _write(summaries, summary_file)
    for number, summary in enumerate(summaries):
        title = f"restart {number}\n" if number else ""
        common.to_stdout(partial(_show, title, summary, console), "the summary")
    return written


def _learn(runs: Sequence[Run], summary_file: Path | None, interrupts: Interrupts) -> bool:
    """Keep what the runs have shown of pairs of jobs, and add it to the file. Ctrl-C loses no more than that.

    :return: whether the file is whole, if it was written anew.
    """
    try:
        with interrupts.let_through():
            factors = [contention.learn_from(work) for work in runs]
    except (KeyboardInterrupt, SimulationStuck, NativeError) as error:
        common.say(f"nothing was learned of the jobs as a pair: {str(error) or 'interrupted'}")
        return True
    if not any(factors):
        return True
    summaries = [_summary(work) for work in runs]
    for summary, factor in zip(summaries, factors, strict=True):
        summary["pair_factor"] = factor
    return _write(summaries, summary_file)


def _write(summaries: Sequence[dict[str, Any]], path: Path | None) -> bool:
    first, *later = summaries
    if path is None:
        return True
    text = json.dumps({**first, "restarts": later} if later else first, indent=2) + "\n"
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        common.say(f"the summary was not written: {error}")
        return False
    return True


def _explain(runs: Sequence[Run], console: Console) -> bool:
    """Print who waited for whom in each host, and write each wait beside its logs: whether all are."""
    written = True
    for work in runs:
        waits, names = work.waits(), [result.name for result in work.results]
        common.to_stdout(partial(render_waits, waits, names, console), "the waits")
        path = work.log_directory / explained.NAME
        try:
            explained.write(path, waits, names, work.telemetry.pool().start_ns)
            common.say(f"each wait is in {path}")
        except OSError as error:
            common.say(f"the waits were not written: {error}")
            written = False
    return written


def _show(title: str, summary: dict[str, Any], console: Console) -> None:
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
        queued=work.queued,
        duration_s=work.duration_s,
    )
    if work.budget_bytes != plan.budget_bytes:
        summary["budget_at_end_bytes"] = work.budget_bytes
    if work.stopped_s:
        summary |= {"stopped_s": work.stopped_s, "serial_estimate_s": None}
    return {**summary, "scheduler_cpu_s": work.scheduler_cpu_s, "pair_factor": None}
