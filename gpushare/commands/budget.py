"""`gpushare budget`."""

from __future__ import annotations

import click

from gpushare.commands import common
from gpushare.errors import RefusedError, UsageError
from gpushare.launcher import running
from gpushare.units import format_bytes, parse_budget


@click.command()
@click.argument("size", required=False)
@click.option("--run", "process", type=int, metavar="PID", help="Which run, if there are several.")
@click.option("--force", is_flag=True, help="Cut it although it is not known yet what a job needs.")
def budget(size: str | None, process: int | None, force: bool) -> int:
    """Show the budget of a run that is under way, or change it.

    A SIZE is as for run; a percentage is of the run's device. More memory is there at once, up to eight times the
    budget that the run began with, or 8 GiB. Less is as soon as what the jobs hold fits; until then nothing new starts
    that would not fit. A budget that is too small for what they keep, or for the largest of them, is refused, and so is
    a smaller one while a job's first iterations have not been measured yet (--force: all the same, and what then does
    not fit is refused memory).

    Exit code: 0 done, 2 the size or the run is wrong or the run does not answer, 3 refused, with the reason.
    """
    common.check_platform()
    process = process if process is not None else _only_run()
    about = running.ask(process, {"op": "about"})
    jobs = ", ".join(about["jobs"])
    if size is None:
        print(f"run {process} has {format_bytes(about['budget_bytes'])} for {jobs}")
        return 0
    wanted = parse_budget(size, about["device_bytes"])
    common.check_least(wanted, f"{size!r} is")
    answer = running.ask(process, {"op": "budget", "budget_bytes": wanted, "force": force})
    if "failed" in answer:
        raise UsageError(f"run {process}: {answer['failed']}")
    if answer["refused"]:
        raise RefusedError(answer["refused"])
    now = answer["budget_bytes"]
    if now == answer["wanted_bytes"]:
        print(f"run {process} has {format_bytes(now)} for {jobs}")
    else:
        print(
            f"run {process} goes from {format_bytes(now)} to {format_bytes(answer['wanted_bytes'])} as soon as what "
            f"{jobs} hold fits"
        )
    return 0


def _only_run() -> int:
    found = running.processes()
    if not found:
        raise UsageError(running.no_run())
    if len(found) > 1:
        raise UsageError(f"several runs are under way; say --run with one of {', '.join(map(str, found))}")
    return found[0]
