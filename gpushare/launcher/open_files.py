"""The limit of open files: gpushare has those of all jobs open, which each would have by itself under plain python."""

from __future__ import annotations

import resource

from gpushare.errors import UsageError

_LEAST, _LEAST_OF_JOB = 32, 8  # with which a run of scripts that open nothing gets through
# What is asked for. The usual limit of 1024 is enough for as many jobs as there can be, so it is left alone.
_ENOUGH, _ENOUGH_FOR_JOB = 128, 12


def make_room(jobs: int) -> int | None:
    """Raise the soft limit of this process, and so of the host, where it is low for so many jobs: what it was before,
    for scripts to see; None if it stays.

    :raises UsageError: the hard one is too low.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    least, enough = _LEAST + _LEAST_OF_JOB * jobs, _ENOUGH + _ENOUGH_FOR_JOB * jobs
    if _infinite(soft) or soft >= enough:
        return None
    most = enough if _infinite(hard) else min(hard, enough)
    if most < least:
        needed = f"{'a job needs' if jobs == 1 else f'{jobs} jobs need'} {least} open files at least"
        raise UsageError(
            f"{needed}, and no more than {hard} are allowed: run fewer at once, or raise the limit (ulimit -Hn)"
        )
    if most == soft:
        return None
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return soft


def _infinite(limit: int) -> bool:
    return limit == resource.RLIM_INFINITY
