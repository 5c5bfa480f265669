"""`gpushare run`."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from gpushare import jobs as job_specs
from gpushare.commands import common
from gpushare.errors import RefusedError, UsageError
from gpushare.jobs import JobSpec
from gpushare.launcher import devices, restart, trace
from gpushare.launcher.logs import Logs, run_directory
from gpushare.launcher.run import Run, RunPlan, RunScreen
from gpushare.profiles import Profile, store
from gpushare.units import format_bytes
from gpushare.views.live import LiveScreen
from gpushare.views.plain import PlainScreen
from gpushare.views.summary import build_summary, render_summary


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("jobs", metavar="JOB...", nargs=-1)
@click.option("-f", "--file", "job_file", type=click.Path(path_type=Path), help="Job file (TOML).")
@click.option("--budget", help="Memory for all jobs: 30GB, 8GiB, 50%. Default: what is free, less a reserve.")
@click.option(
    "--policy",
    type=click.Choice(["unmanaged", "temporal", "zico", "waterwave"]),
    default="zico",
    show_default=True,
)
@common.device_option
@click.option("--log-dir", type=click.Path(path_type=Path), help="Write NAME.out and NAME.err here.")
@click.option("--summary", "summary_file", type=click.Path(path_type=Path), help="Write the summary as JSON.")
@click.option("--trace", "trace_file", type=click.Path(path_type=Path), help="Write all allocations here.")
@click.option("--debug-memory", is_flag=True, help="Tell of frees that fit no block; overwrite freed memory.")
@click.option(
    "--restart", "restarts", is_flag=True, help="If the host dies, start again the jobs not to blame."
)
@click.option("--live/--no-live", default=None, help="Live view. Default: on a terminal.")
def run(
    jobs: tuple[str, ...],
    job_file: Path | None,
    budget: str | None,
    policy: str,
    device: str,
    log_dir: Path | None,
    summary_file: Path | None,
    trace_file: Path | None,
    debug_memory: bool,
    restarts: bool,
    live: bool | None,
) -> int:
    """Run several jobs at once inside one memory budget.

    A JOB is a script or a quoted command line: train.py, "train.py --lr 0.1", "-m package.train".

    Exit code: 0 all jobs succeeded, 1 a job failed, 2 nothing was started, 3 a job was refused because the
    budget is too small for it, 4 the host process died (with --restart: and a job was lost), 130 Ctrl-C.
    """
    common.check_platform()
    on = devices.choose(device)
    specs = _specs(jobs, job_file)
    budget_bytes, how = common.choose_budget(budget, on)
    _check_summary(summary_file)
    profiles = [store.find(spec, on.kind) for spec in specs]
    _check_profiles(specs, profiles, budget_bytes)
    plan = RunPlan(specs, profiles, budget_bytes, policy, debug_memory=debug_memory, device=on)
    log = trace.begin(trace_file, plan)
    logs = Logs(log_dir or run_directory(), [s.name for s in specs])
    show_live = sys.stdout.isatty() if live is None else live
    console = common.Console()
    screen = _screen(plan, console if show_live else None)
    screen.note(f"budget {format_bytes(budget_bytes)} ({how}), policy {policy}, device {on.described}")
    if told := devices.unmanaged_gpu(on):
        screen.note(told)
    for spec, profile in zip(specs, profiles, strict=True):
        if profile:
            screen.note(f"{spec.name} starts with its saved profile")

    def again(later: RunPlan, number: int) -> Run:
        into = Logs(logs.directory / f"restart-{number}", [s.name for s in later.jobs])
        next_screen = _screen(later, console if show_live else None)
        names = ", ".join(s.name for s in later.jobs)
        next_screen.note(
            f"starting again from the first line: {names}; what they write goes to {into.directory}"
        )
        return Run(later, into, next_screen)

    work = Run(plan, logs, screen, log)
    runs = restart.execute(work, again if restarts else None)
    if work.failure:
        raise UsageError(f"the host could not start: {work.failure}")
    for run in runs:
        _save_profiles(run)
    _report(runs, console, summary_file)
    print(f"gpushare: logs are in {logs.directory}", file=sys.stderr)
    return restart.exit_code(runs)


def _screen(plan: RunPlan, console: common.Console | None) -> RunScreen:
    """A live one on a console, else lines."""
    if console is None:
        return PlainScreen(sys.stdout, sys.stderr)
    return LiveScreen([s.name for s in plan.jobs], plan.budget_bytes, console, plan.device.label)


def _save_profiles(work: Run) -> None:
    for index, profile in work.profiles.items():
        if work.results[index].status == "ok":
            store.save(work.plan.jobs[index], work.plan.device.kind, profile)


def _specs(jobs: tuple[str, ...], job_file: Path | None) -> list[JobSpec]:
    specs = [job_specs.parse_job(text) for text in jobs]
    if job_file:
        specs += job_specs.load_job_file(job_file)
    if not specs:
        raise UsageError("there is nothing to run: give a script, or a job file with -f")
    if len(specs) > 63:
        raise UsageError(f"at most 63 jobs can run at once, but got {len(specs)}")
    for spec in specs:
        job_specs.check(spec)
    return job_specs.with_unique_names(specs)


def _check_summary(path: Path | None) -> None:
    if path and (not path.parent.is_dir() or path.is_dir()):
        raise UsageError(f"--summary {path} can't be written: its directory must exist and it must be a file")


def _check_profiles(specs: list[JobSpec], profiles: list[Profile | None], budget_bytes: int) -> None:
    for spec, profile in zip(specs, profiles, strict=True):
        if profile and profile.peak_held_bytes > budget_bytes:
            raise RefusedError(
                f"{spec.name} needs at least {format_bytes(profile.peak_held_bytes)} (its saved profile), "
                f"and the budget is {format_bytes(budget_bytes)}"
            )


def _report(runs: list[Run], console: common.Console, summary_file: Path | None) -> None:
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


def _show(title: str, summary: dict[str, Any], console: common.Console) -> None:
    print(title, end="")
    render_summary(summary, console)


def _summary(work: Run) -> dict[str, Any]:
    plan = work.plan
    return build_summary(
        work.telemetry,
        work.results,
        policy=plan.policy,
        budget_bytes=plan.budget_bytes,
        device=plan.device.described,
        yields=work.yields,
        duration_s=work.duration_s,
    )
