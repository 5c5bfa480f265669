"""The soft limit of open files, where the launcher has raised it for all jobs together: scripts see, and set, the one
that they would have found.

What is allowed in truth is never less than what was raised. Child processes are given that.
"""

from __future__ import annotations

import resource

_get, _set = resource.getrlimit, resource.setrlimit
_shown: int | None = None


def show(soft: int) -> None:
    """Once per host, before any job begins: this is the limit for scripts."""
    global _shown
    _shown = soft
    resource.getrlimit = get_limit


def get_limit(number: int, /) -> tuple[int, int]:
    """As `resource.getrlimit`."""
    soft, hard = _get(number)
    return (soft if _shown is None or number != resource.RLIMIT_NOFILE else _shown), hard


def set_limit(number: int, limits: tuple[int, int], /) -> None:
    """As `resource.setrlimit`."""
    global _shown
    if _shown is None or number != resource.RLIMIT_NOFILE:
        _set(number, limits)
        return
    soft, hard = limits
    allowed = min(_get(number)[0], hard)
    _set(number, (max(soft, allowed), hard))
    _shown = soft
