"""`gpushare profile`."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from gpushare import jobs as job_specs
from gpushare.commands import common
from gpushare.errors import GpushareError, UsageError
from gpushare.jobs import JobSpec
from gpushare.launcher import devices, trace
from gpushare.launcher.devices import Device
from gpushare.launcher.logs import Logs, run_directory
from gpushare.launcher.plan import RunPlan
from gpushare.launcher.results import JOB_FAILED, JobResult
from gpushare.launcher.run import STOPPED, Run
from gpushare.profiles import Profile, store
from gpushare.profiles.store import ProfileError
from gpushare.views.console import Console
from gpushare.views.plain import PlainScreen
from gpushare.views.profile import render_profile

_LEAST_ITERATIONS = 3  # one to warm up, one that is measured, and one at whose beginning that ends


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--json", "as_json", is_flag=True, help="Print the profile to stdout as JSON.")
@click.option("--budget", help="Memory the script may use. Default: what is free, less a reserve.")
@click.option("--trace", "trace_file", type=click.Path(path_type=Path), help="Write all allocations here.")
@common.device_option
@click.argument("job", metavar="JOB")
@click.argument("args", metavar="[ARGS]...", nargs=-1, type=click.UNPROCESSED)
def profile(
    as_json: bool, budget: str | None, trace_file: Path | None, device: str, job: str, args: tuple[str, ...]
) -> int:
    """Measure the memory of one iteration of a job.

    The script really runs, with all that it writes, until its profile is stable (a few iterations), and then for
    six seconds, or about ten iterations if these are long, beside threads that show what it takes of the GIL and of
    memory bandwidth; then it is ended through its own finally and with blocks. The profile is kept for `gpushare run`.

    Exit code: 0 measured, 1 the script failed or had no iterations, 2 nothing was started, 3 the budget is too small
    for it, 4 the host process died, 128+N signal N ended it (130 Ctrl-C).
    """
    common.check_platform()
    on = devices.choose(device)
    script = shlex.quote(job) if args and job_specs.is_file(Path(job)) else job
    command = f"{script} {shlex.join(args)}" if args else job
    spec = job_specs.parse_job(command)
    job_specs.check(spec)
    if behind := _options_behind(args):
        common.say(
            f"{behind} stands behind the script, so it is the script's; an option of profile stands before it"
        )
    if told := devices.untried_torch():
        common.say(told)
    budget_bytes, _ = common.choose_budget(budget, on)
    found, work = measure(spec, on, budget_bytes, trace_file)
    if found is None:
        common.say(why_none(work))
        return work.exit_code or GpushareError.exit_code
    _show(found, as_json)
    return work.exit_code or (JOB_FAILED if work.incomplete else 0)


def _options_behind(args: Sequence[str]) -> str | None:
    """The first word there that profile would have taken for one of its own."""
    own = {name for parameter in profile.params for name in parameter.opts if name.startswith("--")}
    return next((word for word in args if word.split("=")[0] in own), None)


def measure(
    spec: JobSpec, device: Device, budget_bytes: int, trace_file: Path | None = None
) -> tuple[Profile | None, Run]:
    """Run a job until it has a profile, and keep that if the job ended well then; None if it ended before. Its output
    goes to stderr.

    :raises UsageError: the host could not start.
    """
    plan = RunPlan([spec], [None], budget_bytes, "zico", "profile", device=device)
    log = trace.begin(trace_file, plan)
    logs = Logs(run_directory(), [spec.name])
    work = Run(plan, logs, PlainScreen(sys.stderr, sys.stderr), log)
    before = store.find(spec, device.kind)
    work.execute()
    if work.failure:
        raise UsageError(f"the host could not start: {work.failure}")
    found = work.profiles.get(0)
    if found is None:
        return None, work
    if work.exit_code:
        common.say(f"the profile is not kept: {_how_it_ended(work)}")
        return found, work
    if work.stopped_profiles:
        common.say(f"the profile is not kept: {STOPPED}")
        return found, work
    found = found.instead_of(before)
    try:
        common.say(f"profile saved as {store.save(work.keys[0], found)}")
    except ProfileError as error:
        common.say(f"the profile is not kept: {error}")
    return found, work


def _how_it_ended(work: Run) -> str:
    """Of a job that was measured and then came to no good end."""
    result = work.results[0]
    because = f": {result.message}" if result.message else ""
    return f"{result.name} {_ended(result)} after it was measured{because}"


def why_none(work: Run) -> str:
    """Why a job that was run for its profile has none."""
    result = work.results[0]
    seen = work.telemetry.job(result.account).iterations if result.account else 0
    return f"no profile: {result.name} {_ended(result)}: {result.message or _too_few(seen)}"


def _too_few(seen: int) -> str:
    if seen >= _LEAST_ITERATIONS:
        return f"none of the {seen} iterations that were seen could be measured"
    were = "none was" if seen == 0 else "one was" if seen == 1 else f"{seen} were"
    return f"it takes {_LEAST_ITERATIONS} iterations, and {were} seen (an optimizer step or a backward pass ends one)"


def _ended(result: JobResult) -> str:
    if result.status == "failed" and result.exit_code and not result.message:
        return f"exited with {result.exit_code}"
    return "ended well" if result.status == "ok" else f"ended as {result.status}"


def _show(found: Profile, as_json: bool) -> None:
    def show() -> None:
        if as_json:
            print(json.dumps(found.to_json()), flush=True)
        else:
            render_profile(found, Console())

    common.to_stdout(show, "the profile")
