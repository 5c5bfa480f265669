"""`gpushare run`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import click

from gpushare import jobs as job_specs
from gpushare.commands import common
from gpushare.commands.interrupts import Interrupts
from gpushare.errors import RefusedError, UsageError
from gpushare.jobs import FIFO, JobSpec
from gpushare.launcher import devices, open_files, restart, trace
from gpushare.launcher.logs import Logs, hold, run_directory
from gpushare.launcher.plan import RunPlan
from gpushare.launcher.run import Run, RunScreen
from gpushare.profiles import Profile, store
from gpushare.scheduling.policies import DEFAULT, POLICIES
from gpushare.units import format_apart, format_bytes
from gpushare.views.plain import PlainScreen

_NAMED = 5  # files, in a note


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("jobs", metavar="JOB...", nargs=-1)
@click.option("-f", "--file", "job_file", type=click.Path(path_type=Path), help="Job file (TOML).")
@click.option("--budget", help="Memory for all jobs: 30GB, 8GiB, 50%. Default: what is free, less a reserve.")
@click.option(
    "--policy",
    type=click.Choice(tuple(POLICIES)),
    default=DEFAULT,
    show_default=True,
    help="How iterations of several jobs overlap; auto chooses among temporal, zico and waterwave by measurement, and "
    "whether some of three jobs or more take turns, or fewer are there at once.",
)
@common.order_option
@common.priority_option
@common.device_option
@click.option(
    "--log-dir",
    type=click.Path(path_type=Path),
    help="Write NAME.out, NAME.err, NAME.alloc and host.log here.",
)
@click.option("--summary", "summary_file", type=click.Path(path_type=Path), help="Write the summary as JSON.")
@click.option("--trace", "trace_file", type=click.Path(path_type=Path), help="Write all allocations here.")
@common.split_option
@click.option(
    "--no-profile", "anew", is_flag=True, help="Measure each job anew, although it has a saved profile."
)
@click.option(
    "--explain", is_flag=True, help="Tell who waited for whom, why, how long, how wrong forecasts were."
)
@click.option(
    "--share",
    "shared_packages",
    metavar="PACKAGE",
    multiple=True,
    help="Load this installed package once for all jobs, as compiled ones are: they start sooner, and what one "
    "configures in it holds for all.",
)
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
    order: str | None,
    priorities: tuple[str, ...],
    device: str,
    log_dir: Path | None,
    summary_file: Path | None,
    trace_file: Path | None,
    split_size: str | None,
    anew: bool,
    explain: bool,
    shared_packages: tuple[str, ...],
    debug_memory: bool,
    restarts: bool,
    live: bool | None,
) -> int:
    """Run several jobs at once inside one memory budget.

    A JOB is a script or a quoted command line: train.py, "train.py --lr 0.1", "-m package.train".

    Exit code: 0 all jobs succeeded, 1 a job failed or a file could not be written, 2 nothing was started, 3 a job was
    refused because the budget is too small for it, 4 the host process died (with --restart: and a job was lost), 128+N
    signal N asked all jobs to end (130 Ctrl-C, 143 SIGTERM).
    """
    common.check_platform()
    on = devices.choose(device)
    specs = job_specs.with_priorities(_specs(jobs, job_file), priorities)
    common.check_policies([policy], specs, order, split_size)
    budget_bytes, how = common.choose_budget(budget, on)
    _check_summary(summary_file, trace_file)
    profiles = [None if anew else store.find(spec, on.kind) for spec in specs]
    _check_profiles(specs, profiles, budget_bytes)
    plan = RunPlan(
        specs,
        profiles,
        budget_bytes,
        policy,
        order=job_specs.order_for(order, specs),
        split_bytes=common.split_bytes(split_size),
        explain=explain,
        debug_memory=debug_memory,
        device=on,
        shared_packages=shared_packages,
        open_files=open_files.make_room(len(specs)),
    )
    into = log_dir or run_directory()
    hold(into)
    log = trace.begin(trace_file, plan)
    logs = Logs(into, [s.name for s in specs])
    shown = sys.stdout.isatty() if live is None else live
    screen = _screen(plan, live=shown)
    _tell_plan(plan, how, screen)
    _tell_earlier(logs, screen)
    again = _restarting(logs, trace_file, live=shown) if restarts else None
    work = Run(plan, logs, screen, log)
    with Interrupts() as interrupts:
        runs = restart.execute(work, again, meanwhile=_load_reports)
        if failure := runs[0].failure:
            raise UsageError(f"the host could not start: {failure}")
        whole = _load_reports().conclude(runs, summary_file, interrupts, waits=explain)
        common.say(f"logs are in {logs.directory}")
    return restart.exit_code(runs, restarts=restarts, whole=whole)


def _tell_plan(plan: RunPlan, how: str, screen: RunScreen) -> None:
    order = "" if plan.order == FIFO else f"order {plan.order}, "
    screen.note(
        f"budget {format_bytes(plan.budget_bytes)} ({how}), policy {plan.policy}, {order}"
        f"device {plan.device.described}"
    )
    for told in (devices.unmanaged_gpu(plan.device), devices.untried_torch()):
        if told:
            screen.note(told)
    for spec in _of_one_script(plan.jobs):
        screen.note(f"{spec.name} is {spec.command}")
    for spec, profile in zip(plan.jobs, plan.profiles, strict=True):
        if profile:
            screen.note(f"{spec.name} starts with its saved profile")


def _tell_earlier(logs: Logs, screen: RunScreen) -> None:
    if logs.earlier:
        some = ", ".join(logs.earlier[:_NAMED]) + (", ..." if len(logs.earlier) > _NAMED else "")
        screen.note(f"{logs.directory} keeps files of an earlier run beside this one's: {some}")


def _of_one_script(specs: Sequence[JobSpec]) -> list[JobSpec]:
    """Jobs that only a number in their names tells apart."""
    counts = Counter((spec.kind, spec.cwd, spec.target) for spec in specs)
    return [spec for spec in specs if counts[spec.kind, spec.cwd, spec.target] > 1]


def _restarting(logs: Logs, trace_file: Path | None, *, live: bool) -> Callable[[RunPlan, int], Run]:
    """Makes the runs after the first one. What their jobs write goes to a folder beside the first logs, and their
    allocations to a file beside the first one's."""

    def again(plan: RunPlan, number: int) -> Run:
        which = f"restart-{number}"
        hold(logs.directory / which)
        into = Logs(logs.directory / which, [s.name for s in plan.jobs])
        screen = _screen(plan, live=live)
        log = None
        try:
            log = trace.begin(trace_file and trace_file.with_name(f"{trace_file.name}.{which}"), plan)
        except UsageError as error:  # no reason to lose the jobs
            screen.note(str(error))
        names = ", ".join(s.name for s in plan.jobs)
        screen.note(f"starting again from the first line: {names}; what they write goes to {into.directory}")
        return Run(plan, into, screen, log)

    return again


def _screen(plan: RunPlan, *, live: bool) -> RunScreen:
    """A live one, else lines."""
    if not live:
        return PlainScreen(sys.stdout, sys.stderr)
    from gpushare.views.console import Console  # rich takes a while to load, and lines need none of it
    from gpushare.views.live import LiveScreen

    return LiveScreen([s.name for s in plan.jobs], plan.budget_bytes, Console(), plan.device.label)


def _load_reports() -> ModuleType:
    """What tells of the run once it is over: loaded beside the host, which loads torch, and not before it."""
    from gpushare.commands import reports

    return reports


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


def _check_summary(path: Path | None, trace_file: Path | None) -> None:
    if path and trace_file and path.absolute() == trace_file.absolute():
        raise UsageError(f"--summary and --trace can't both be written to {path}: give two files")
    if path and (not path.parent.is_dir() or path.is_dir()):
        raise UsageError(f"--summary {path} can't be written: its directory must exist and it must be a file")


def _check_profiles(specs: list[JobSpec], profiles: list[Profile | None], budget_bytes: int) -> None:
    for spec, profile in zip(specs, profiles, strict=True):
        if profile and profile.peak_held_bytes > budget_bytes:
            needs, budget = format_apart(profile.peak_held_bytes, budget_bytes)
            raise RefusedError(
                f"nothing was started: {spec.name} needs at least {needs} by its saved profile, and the budget is "
                f"{budget}; if it needs less now, --no-profile has it measured anew"
            )
