"""Settings of the process and the interpreter that can't be split: what each job has set, and conflicts named."""

from __future__ import annotations

import gc
import locale
import resource
import socket
import sys
import time
import types
from functools import partial
from typing import Any

from gpushare.isolation import context, environment, open_files, switch
from gpushare.isolation.switch import Switch

# What a person calls it, its module, the setter, how to read it.
_SETTINGS: tuple[tuple[str, Any, str, Any], ...] = (
    ("the recursion limit", sys, "setrecursionlimit", sys.getrecursionlimit),
    ("the switch interval of threads", sys, "setswitchinterval", sys.getswitchinterval),
    ("the longest integer as text", sys, "set_int_max_str_digits", sys.get_int_max_str_digits),
    ("the timeout of sockets", socket, "setdefaulttimeout", socket.getdefaulttimeout),
)
_switches: list[Switch] = []
_set_locale, _set_thresholds = locale.setlocale, gc.set_threshold
_set_zone = time.tzset


def _apply(function: Any, arguments: tuple[Any, ...]) -> None:
    function(*arguments)


def _limit_switches() -> dict[int, Switch]:
    names = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    numbers = {getattr(resource, name): name for name in names}
    return {
        number: Switch(
            f"the limit {name}", partial(open_files.set_limit, number), partial(open_files.get_limit, number)
        )
        for number, name in numbers.items()
    }


def _raises_only(number: int, limits: tuple[int, int]) -> bool:
    """More open files, say: that takes nothing from anybody."""
    now, wanted = open_files.get_limit(number)[0], limits[0]
    return wanted == resource.RLIM_INFINITY or (now != resource.RLIM_INFINITY and wanted >= now)


_limits: dict[int, Switch] = {}


def _setrlimit(number: int, limits: tuple[int, int], /) -> None:
    if number not in _limits or _raises_only(number, limits):
        open_files.set_limit(number, limits)
    else:
        _limits[number].set(limits)


def _setlocale(category: int, value: Any = None) -> str:
    if value is None:
        return _set_locale(category)
    if category not in _locales:
        read = partial(_set_locale, category)
        _locales[category] = Switch("the locale", read, read)
        _switches.append(_locales[category])
    name: str = _locales[category].set(value)
    return name


_locales: dict[int, Switch] = {}


def _zone() -> str:
    """That C code has taken from the environment last, as far as Python tells."""
    hours = [f"{-seconds / 3600:+g} h" for seconds in (time.timezone, time.altzone)]
    return "/".join(dict.fromkeys(f"{name} {by}" for name, by in zip(time.tzname, hours, strict=True)))


def _zone_of_host(_: str) -> None:
    environment.put_back("TZ")
    _set_zone()


def plain_collector() -> types.ModuleType:
    """The module `gc` for code that sets thresholds for a moment, whichever job is in it: that is no job's wish."""
    plain = types.ModuleType(gc.__name__, gc.__doc__)
    vars(plain).update(vars(gc), set_threshold=_set_thresholds)
    return plain


def install() -> None:
    """Watch the setters."""
    for title, module, setter, getter in _SETTINGS:
        watched = Switch(title, getattr(module, setter), getter)
        _switches.append(watched)
        setattr(module, setter, watched.function())
    zone = Switch("the time zone", _set_zone, _zone, _zone_of_host)
    _switches.append(zone)
    times: Any = time
    times.tzset = zone.function()
    thresholds = Switch(
        "the thresholds of garbage collection",
        gc.set_threshold,
        gc.get_threshold,
        partial(_apply, gc.set_threshold),
    )
    _switches.append(thresholds)
    gc.set_threshold = thresholds.function()
    _limits.update(_limit_switches())
    names: Any = locale
    resource.setrlimit, names.setlocale = _setrlimit, _setlocale


def enter(job: context.JobContext) -> None:
    """From now on the job's wishes count."""
    switch.enter(job)


def leave(job: context.JobContext) -> None:
    """They no longer do. A limit of the process stays: it can't always be raised again."""
    switch.leave(job)
    for watched in _switches:
        watched.leave(job)
