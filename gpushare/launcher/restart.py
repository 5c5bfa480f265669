"""`--restart`: when the host has died, the jobs that it took with it start again, from their first lines.

Where it is known which job is to blame, the others start again together, without it. Else each starts again by itself,
one after the other: what crashes again is to blame, and takes nobody with it. Each new host has fewer jobs than the one
before, so this ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace

from gpushare.launcher import results
from gpushare.launcher.plan import RunPlan
from gpushare.launcher.results import JobResult
from gpushare.launcher.run import Run


def groups(run: Run) -> list[list[int]]:
    """The jobs of each new host, by their places in `run`."""
    if not run.host_died or run.ended_by:
        return []
    lost = [index for index, result in enumerate(run.results) if result.status == "lost"]
    if run.culprit is not None:
        return [lost] if lost else []
    may_be_anothers = len(lost) > 1 or run.device_lost_by not in (
        None,
        *lost,
    )  # one that ended well met it first
    return [[index] for index in lost] if may_be_anothers else []


def plan_for(run: Run, group: Sequence[int]) -> RunPlan:
    """The same for some of the jobs (their places in `run`), with what was measured of them and the budget that was
    set last. Input that was read is not there again."""
    plan = run.plan
    return replace(
        plan,
        jobs=[plan.jobs[index] for index in group],
        profiles=[run.profiles.get(index) or plan.profiles[index] for index in group],
        budget_bytes=run.budget_to_be,
        give_input=False,
    )


def execute(
    first: Run, again: Callable[[RunPlan, int], Run] | None, meanwhile: Callable[[], object] | None = None
) -> list[Run]:
    """Carry out `first` and all restarts; all runs in their order. `again(plan, number)` makes those after it, and
    `meanwhile` is for the first one (see `Run.execute`)."""
    first.execute(meanwhile)
    runs = [first]
    if again is None:
        return runs
    waiting = deque(plan_for(first, group) for group in groups(first))
    while waiting and not runs[-1].ended_by:
        run = again(waiting.popleft(), len(runs))
        run.execute()
        runs.append(run)
        for result in run.results if run.failure else ():
            result.status, result.message = "lost", f"the host could not start: {run.failure}"
        waiting.extend(plan_for(run, group) for group in groups(run))
    return runs


def exit_code(runs: Sequence[Run], *, restarts: bool, whole: bool) -> int:
    """Of the whole command: a job that ended a host and was left out has failed, one that was lost was not replaced.

    :param restarts: whether jobs that were lost are started again, where there are any.
    :param whole: every file that was asked for is. Who goes by the exit code would not learn of it otherwise.
    """
    if runs[0].failure or not restarts:
        code = runs[0].exit_code
    else:
        ended = last_results(runs)
        lost = any(result.status == "lost" for result in ended)
        ended_by = next((run.ended_by for run in runs if run.ended_by), None)
        code = results.exit_code(ended, ended_by=ended_by, host_died=lost)
    return code or (results.OK if whole else results.JOB_FAILED)


def last_results(runs: Sequence[Run]) -> list[JobResult]:
    """What became of each job in the end, in the first run's order."""
    found = {result.name: result for run in runs for result in run.results}
    return list(found.values())
