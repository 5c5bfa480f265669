"""`gpushare plan`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from gpushare import jobs as job_specs
from gpushare.commands import common
from gpushare.commands.contention import KnownFactor, contention_of, cores_here, known_factors, threads_of
from gpushare.commands.profile import measure, why_none
from gpushare.errors import GpushareError, RefusedError, UsageError
from gpushare.jobs import JobSpec
from gpushare.launcher import devices
from gpushare.launcher.devices import Device
from gpushare.native.library import NativeError
from gpushare.profiles import Profile, store
from gpushare.scheduling.policies import POLICIES
from gpushare.simulation import Contention, SimulatedJob, SimulationStuck, from_profile
from gpushare.simulation.job import iterations_for, steps_for
from gpushare.simulation.report import build_report, build_sweep
from gpushare.simulation.rules import Rules
from gpushare.units import format_apart, format_bytes, parse_budget_bytes
from gpushare.views.console import Console
from gpushare.views.plan import render_plan
from gpushare.views.progress import Progress

_SWEEP_POINTS = 16


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("jobs", metavar="JOB_OR_PROFILE...", nargs=-1)
@click.option("-f", "--file", "job_file", type=click.Path(path_type=Path), help="Job file (TOML).")
@click.option("--budget", help="Memory for all jobs, as for run; it may be more than this machine has.")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    type=click.Choice(tuple(POLICIES)),
    help="Simulate this one; may be given several times, the last one is drawn. Default: all, and the best is.",
)
@click.option(
    "--iterations",
    type=click.IntRange(1, 3000),
    default=30,
    show_default=True,
    help="Of the slowest job; the others do as many as take as long, 3000 at most.",
)
@click.option("--cores", type=common.within(1, 4096), help="Default: those of this machine.")
@click.option(
    "--threads",
    type=common.within(0.01, 4096),
    help="Cores each job keeps busy. Default: as measured in its profile, else OMP_NUM_THREADS, or all.",
)
@click.option(
    "--slowdown",
    type=common.within(1, 1000),
    help="How much slower a job is beside each other one that computes. Default: of each pair what runs of the two "
    "have taught, else what their profiles and runs of other pairs say, else 1.",
)
@click.option(
    "--stagger",
    type=common.within(0, 3600),
    default=0.0,
    help="Seconds from one job's start to the next one's.",
)
@common.order_option
@common.priority_option
@common.split_option
@click.option(
    "--sweep-budget",
    is_flag=True,
    help="Throughput at budgets from the largest peak to the sum, 32 MiB at least.",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything to stdout as JSON.")
@common.device_option
def plan(
    jobs: tuple[str, ...],
    job_file: Path | None,
    budget: str | None,
    policies: tuple[str, ...],
    iterations: int,
    cores: float | None,
    threads: float | None,
    slowdown: float | None,
    stagger: float,
    order: str | None,
    priorities: tuple[str, ...],
    split_size: str | None,
    sweep_budget: bool,
    as_json: bool,
    device: str,
) -> int:
    """Simulate jobs side by side before running them.

    A JOB is a script or a quoted command line, as for run, or a file that `gpushare profile --json` wrote. A
    script without a saved profile is profiled first: it really runs until it is measured.

    Exit code: 0 each job can run inside the budget, 1 a simulation came to no end, 2 nothing was simulated, 3 a job
    can't run inside the budget, 128+N signal N ended it (130 Ctrl-C).
    """
    common.check_platform()
    on = devices.choose(device)
    entries = _entries(jobs, job_file, priorities)
    chosen = tuple(dict.fromkeys(policies)) or tuple(POLICIES)
    common.check_policies(chosen, [e.spec for e in entries], order, split_size)
    rules = Rules(job_specs.order_for(order, [e.spec for e in entries]), common.split_bytes(split_size))
    budget_bytes = _budget(budget, on)
    cores = cores or cores_here()
    entries = _with_profiles(entries, on)
    profiles = [entry.profile for entry in entries if entry.profile]
    for text in (*_differences(entries), *_from_elsewhere(entries, on)):
        common.say(text)
    simulated = _jobs(entries, iterations, threads, cores, stagger)
    known = known_factors(profiles, [job.threads for job in simulated], cores, slowdown)
    work = _Work(
        jobs=simulated,
        page_bytes=min(profile.page_bytes for profile in profiles),
        policies=chosen,
        budget_bytes=budget_bytes,
        contention=contention_of(cores, slowdown, known),
        known=known,
        rules=rules,
    )
    with Progress() as progress:
        report = work.report(sweep=sweep_budget, tell=progress.tell)
    if as_json:
        common.to_stdout(lambda: print(json.dumps(report)), "the plan")
    else:
        console = Console()
        drawn = policies[-1] if policies else _best(report)
        common.to_stdout(lambda: render_plan(report, console, picture_of=drawn), "the plan")
    return _tell_who_never_fits(report)


@dataclass
class _Entry:
    """What the command line names: a job, with its profile once there is one."""

    spec: JobSpec
    profile: Profile | None


@dataclass(frozen=True)
class _Work:
    """Everything that the simulations need."""

    jobs: list[SimulatedJob]
    page_bytes: int
    policies: tuple[str, ...]
    budget_bytes: int
    contention: Contention
    known: list[KnownFactor]
    rules: Rules

    def report(self, *, sweep: bool, tell: Callable[[str], None]) -> dict[str, Any]:
        """Simulate.

        :raises GpushareError: a simulation came to no end.
        :raises UsageError: there is none of such jobs.
        """
        try:
            report = build_report(
                self.jobs,
                policies=self.policies,
                budget_bytes=self.budget_bytes,
                page_bytes=self.page_bytes,
                contention=self.contention,
                rules=self.rules,
                tell=tell,
            )
            report["pairs"] = [k.to_json() for k in self.known]
            if sweep:
                report["sweep"] = build_sweep(
                    self.jobs,
                    policies=self.policies,
                    page_bytes=self.page_bytes,
                    contention=self.contention,
                    rules=self.rules,
                    points=_SWEEP_POINTS,
                    least_bytes=common.LEAST_BUDGET_BYTES,
                    tell=tell,
                )
        except NativeError as error:
            raise UsageError(f"the jobs can't be simulated: {error}") from None
        except SimulationStuck as error:
            raise GpushareError(
                f"the simulation came to no end, which is a bug of gpushare: {error}"
            ) from None
        return report


def _entries(jobs: tuple[str, ...], job_file: Path | None, priorities: tuple[str, ...]) -> list[_Entry]:
    entries = [_entry(text) for text in jobs]
    if job_file:
        entries += [_Entry(spec, None) for spec in job_specs.load_job_file(job_file)]
    if not entries:
        raise UsageError("there is nothing to plan: give scripts or profiles, or a job file with -f")
    if len(entries) > 63:
        raise UsageError(f"at most 63 jobs can run at once, but got {len(entries)}")
    for entry in entries:
        if entry.profile is None:
            job_specs.check(entry.spec)
    specs = job_specs.with_priorities(
        job_specs.with_unique_names([entry.spec for entry in entries]), priorities
    )
    return [_Entry(spec, entry.profile) for spec, entry in zip(specs, entries, strict=True)]


def _entry(text: str) -> _Entry:
    path = Path(text)
    if not job_specs.is_file(path):
        if path.suffix == ".json" and " " not in text:
            raise UsageError(f"there is no profile {text}; `gpushare profile --json JOB` prints one")
        return _Entry(job_specs.parse_job(text), None)
    if path.suffix != ".json" and not job_specs.is_profile(path):
        return _Entry(job_specs.parse_job(text), None)
    found = Profile.load(path)
    try:
        name = job_specs.parse_job(found.command).name
    except UsageError:
        name = path.stem
    return _Entry(JobSpec(name, "script", text, (), Path.cwd(), found.command), found)


def _with_profiles(entries: list[_Entry], device: Device) -> list[_Entry]:
    """Entries of which each has a profile: its saved one, else a new one.

    :raises UsageError: a job ended before it had one.
    :raises RefusedError: for want of memory.
    """
    for entry in entries:
        entry.profile = entry.profile or store.find(entry.spec, device.kind)
        if entry.profile is None:
            common.say(f"{entry.spec.name} has no saved profile and runs until it is measured")
            entry.profile = _measured(entry.spec, device)
    return entries


def _differences(entries: list[_Entry]) -> list[str]:
    """In what the profiles are not of one machine, though they are simulated as if they were."""
    found = [(entry.spec.name, entry.profile) for entry in entries if entry.profile]
    told = []
    for what, of in _CONDITIONS.items():
        names: dict[str, list[str]] = {}
        for name, profile in found:
            names.setdefault(of(profile), []).append(name)
        if len(names) > 1:
            each = "; ".join(f"{value} ({', '.join(jobs)})" for value, jobs in names.items())
            told.append(f"the profiles differ in {what} and are planned as if they did not: {each}")
    return told


def _from_elsewhere(entries: list[_Entry], here: Device) -> list[str]:
    """What to tell of profiles that are not of the device here: what jobs do to each other is another one's, too."""
    found = [(entry.spec.name, entry.profile.device) for entry in entries if entry.profile]
    others = [f"{name} ({device})" for name, device in found if device != here.kind]
    if not others:
        return []
    return [
        f"not measured on {here.kind}, the device here: {', '.join(others)}; how much slower jobs are beside each "
        "other is taken from what is known of the device that they were measured on"
    ]


_CONDITIONS: dict[str, Callable[[Profile], str]] = {
    "device": lambda profile: str(profile.device),
    "torch": lambda profile: str(profile.torch),
    "page size": lambda profile: format_bytes(profile.page_bytes),
}


def _measured(spec: JobSpec, device: Device) -> Profile:
    budget_bytes, _ = common.choose_budget(None, device)
    found, run = measure(spec, device, budget_bytes)
    if run.ended_by:
        raise SystemExit(run.exit_code)
    if found is None:
        raise (RefusedError if run.exit_code == RefusedError.exit_code else UsageError)(why_none(run))
    if run.exit_code:
        common.say(f"{spec.name} is planned as measured")
    return found


def _jobs(
    entries: list[_Entry], iterations: int, threads: float | None, cores: float, stagger_s: float
) -> list[SimulatedJob]:
    found = [(entry.spec, entry.profile) for entry in entries if entry.profile]
    counts = iterations_for([p.mean_iteration_s for _, p in found], iterations)
    steps = steps_for(counts)
    return [
        from_profile(
            p,
            spec.name,
            priority=spec.priority,
            iterations=n,
            threads=threads or threads_of(p, cores),
            arrival_s=i * stagger_s,
            steps=steps,
        )
        for i, ((spec, p), n) in enumerate(zip(found, counts, strict=True))
    ]


def _budget(text: str | None, device: Device) -> int:
    if text is None or text.strip().endswith("%"):
        return common.choose_budget(text, device)[0]
    budget_bytes = parse_budget_bytes(text)
    common.check_least(budget_bytes, "got")
    return common.whole_pages(budget_bytes)


def _best(report: dict[str, Any]) -> str:
    """The policy with the most throughput, then the least time, of those under which the most jobs end well."""

    def worth(policy: str) -> tuple[int, float, float]:
        found = report["policies"][policy]
        ended = sum(job["status"] == "ok" for job in found["jobs"])
        return ended, round(found["stp"], 2), -found["duration_s"]

    policies: list[str] = list(report["policies"])
    return max(policies, key=worth)


def _tell_who_never_fits(report: dict[str, Any]) -> int:
    code = 0
    for job in report["jobs"]:
        if not job["fits_alone"]:
            needs, budget = format_apart(job["peak_bytes"], report["budget_bytes"])
            common.say(f"{job['name']} needs at least {needs} by itself, and the budget is {budget}")
            code = RefusedError.exit_code
    return code
