"""Of which installed packages each job has a copy: those of plain Python that no compiled package needs.

Such a package keeps what a script registers, configures or has under way in its modules, and a second script must not
find that there. Python loads compiled code once per process, so these stay one for all jobs:

- packages with compiled code, and what they need (they would hand a job objects of another copy),
- the Python side of one compiled package, which it names by its exact version,
- those that register at their import what can be known once only, in C++ of another package,
- what is loaded before any job (torch, and what it imports), and what torch imports where it is installed,
- what a person wants to be shared, with what it has of its extras: where that is installed it is used.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from importlib.machinery import ModuleSpec
from typing import Any

from gpushare.isolation import finders

_COMPILED = re.compile(r"\.(?:so|pyd|dylib)(?:\.[\d.]+)?$")
_REQUIREMENT = re.compile(r"Requires-Dist: *([\w.-]+)([^;\n]*)(;.*)?")
_EXTRA = re.compile(r"\bextra\b")
_ON_WINDOWS = re.compile(r"(?:platform_system|sys_platform|os_name)\s*==\s*['\"](?:Windows|win32|nt)['\"]")
_HOST = "gpushare"  # compiled, but it hands out nothing
_TORCH = "torch"
# One copy of the Python side of these, though they name their compiled package by a range.
_FRONT_ENDS = frozenset({"jax"})
_REGISTER_ONCE = frozenset({"datasets"})  # its types of columns with pyarrow
# Torch imports them where they are installed, but needs nothing of what they need.
_TAKEN_BY_TORCH = ("einops", "functorch", "onnx_ir", "onnxscript", "opt_einsum", "tensorboard", "torchgen")
# Compiled, but for a library or program that it calls, and no module of Python.
_PLAIN = frozenset({"wandb"})
# Needed by many, but only to print and to read options: objects of two copies never meet.
_APART = frozenset({"absl-py", "rich"})


@dataclass(frozen=True)
class Distribution:
    """What an installer has written down of a package.

    :param needs: names of distributions, and the versions that will do.
    :param tops: modules and packages at the top that it holds.
    :param can_use: names of those that its extras need.
    """

    name: str
    needs: dict[str, str]
    tops: frozenset[str]
    is_compiled: bool
    can_use: frozenset[str] = frozenset()


class Installed:
    """Answers by the name of a package at the top, or of a module there.

    :param loaded: those that are there before any job.
    :param wanted: distributions or packages that are to be shared.
    """

    def __init__(
        self, found: Iterable[Distribution], loaded: Iterable[str], wanted: Iterable[str] = ()
    ) -> None:
        distributions = {each.name: each for each in found}
        wanted_names = set(map(normal, wanted))
        shared = _closure(distributions, wanted_names)
        self._is_own: dict[str, bool] = {}
        by_top: dict[str, set[str]] = defaultdict(set)
        for each in distributions.values():
            for top in each.tops:
                by_top[top].add(each.name)
        apart = {
            top for name in _APART - wanted_names if name in distributions for top in distributions[name].tops
        }
        self._apart = apart
        for top, names in by_top.items():
            self._is_own[top] = not names & shared
        for top in (set(loaded) | set(_TAKEN_BY_TORCH)) - apart | set(wanted):
            self._is_own[top] = False
        self._finders = list(sys.meta_path)  # not those that scripts will add
        self._missing: set[str] = set()
        self._looked_for = threading.local()

    def is_shared(self, top: str) -> bool:
        """Whether it is known to be one for all jobs."""
        return self._is_own.get(top) is False

    def is_apart(self, top: str) -> bool:
        """Whether each job has a copy, and those that shared packages need for themselves are another one."""
        return top in self._apart

    def is_missing(self, top: str) -> bool:
        """Whether nothing of this name was found when somebody looked."""
        return not self.has_own(top) and top in self._missing

    def has_own(self, top: str) -> bool:
        """Whether each job has a copy. Of what no installer has written down, its files tell."""
        known = self._is_own.get(top)
        if known is not None or top in self._missing or getattr(self._looked_for, "top", None) is not None:
            return bool(known)
        self._looked_for.top = top  # finders may import
        try:
            spec = _find(self._finders, top)
        finally:
            self._looked_for.top = None
        if spec is None:
            self._missing.add(top)
            return False
        known = self._is_own[top] = _is_plain(spec)
        return known


def normal(name: str) -> str:
    """A distribution's name as installers compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def distributions() -> Iterator[Distribution]:
    """All that are on `sys.path`, the first of each name."""
    seen: set[str] = set()
    for found in metadata.distributions():
        head = (found.read_text("METADATA") or found.read_text("PKG-INFO") or "").partition("\n\n")[0]
        titles = re.findall(r"^Name: *(\S+)", head, re.MULTILINE)
        if not titles or normal(titles[0]) in seen:
            continue
        seen.add(normal(titles[0]))
        needs = {
            normal(name): versions.strip(" ()")
            for name, versions, marker in _REQUIREMENT.findall(head)
            if not _is_for_others(marker)
        }
        extras = frozenset(
            normal(name) for name, _, marker in _REQUIREMENT.findall(head) if _EXTRA.search(marker)
        )
        tops, is_compiled = _content(found, titles[0])
        yield Distribution(normal(titles[0]), needs, tops, is_compiled, extras)


def _is_for_others(marker: str) -> bool:
    """Whether what is needed under this marker is for an extra, or for Windows, where we never are."""
    return bool(_EXTRA.search(marker) or (_ON_WINDOWS.search(marker) and " or " not in marker))


def _content(found: metadata.Distribution, title: str) -> tuple[frozenset[str], bool]:
    """What it holds at the top, and whether something of it is compiled."""
    record = found.read_text("RECORD")
    files = _files(record or "")
    tops = frozenset(filter(None, map(_top_of_file, files)))
    is_compiled = record is None or any(map(_COMPILED.search, files))
    if not tops or any(path.startswith("__editable__") for path in files):  # its files lie elsewhere
        told = (found.read_text("top_level.txt") or re.sub(r"[-.]+", "_", title)).split()
        specs = (_find(sys.meta_path, top) for top in told)
        is_compiled = is_compiled or not all(map(_is_plain, filter(None, specs)))
        tops |= frozenset(told)
    return tops, is_compiled


def _files(record: str) -> list[str]:
    return [line.rsplit(",", 2)[0].strip('"') for line in record.splitlines()]


def _top_of_file(path: str) -> str:
    """Empty for what is no module: scripts, metadata."""
    first, is_inside, _ = path.partition("/")
    if is_inside:
        return first if first.isidentifier() and first != "__pycache__" else ""
    return first.partition(".")[0] if first.endswith(".py") or _COMPILED.search(first) else ""


def _closure(all_: dict[str, Distribution], wanted: set[str]) -> set[str]:
    """Names of the distributions that are shared."""
    compiled = {each.name for each in all_.values() if each.is_compiled} - {_HOST} - _PLAIN
    fronts = {each.name for each in all_.values() if _is_front(each, compiled)}
    by_top = {each.name for each in all_.values() if wanted & set(map(normal, each.tops))}
    asked = (wanted & all_.keys()) | by_top
    used = {name for each in asked for name in all_[each].can_use & all_.keys() - _APART}
    left = list(compiled | fronts | ((_FRONT_ENDS | _REGISTER_ONCE) & all_.keys()) | asked | used)
    shared = set(left)
    while left:
        for name in all_[left.pop()].needs:
            if name in all_ and name not in shared and name not in _APART:
                shared.add(name)
                left.append(name)
    return shared


def _is_front(each: Distribution, compiled: set[str]) -> bool:
    return any("==" in each.needs[name] for name in each.needs.keys() & compiled - {_TORCH})


def _find(all_: list[Any], top: str) -> ModuleSpec | None:
    return next(filter(None, (finders.find(finder, top) for finder in all_)), None)


def _is_plain(spec: ModuleSpec) -> bool:
    """Whether all its files are Python's or data."""
    if (spec.origin or "") in ("built-in", "frozen"):
        return False
    if spec.submodule_search_locations is None:
        return not _COMPILED.search(spec.origin or "")
    folders = list(spec.submodule_search_locations)
    names = (name for folder in folders for _, _, files in os.walk(folder) for name in files)
    return not any(map(_COMPILED.search, names))


def of_this_interpreter(loaded: Iterable[str], wanted: Iterable[str]) -> Installed:
    """As it is now; reading what installers have written takes some 0.3 ms for each package."""
    return Installed(distributions(), loaded, wanted)


def unknown(wanted: Iterable[str]) -> list[str]:
    """Which of the names are of nothing that is installed."""
    names = list(wanted)
    if not names:
        return []
    found = list(distributions())
    known = {each.name for each in found} | {top for each in found for top in each.tops}
    is_known = partial(_is_known, known)
    return [name for name in names if not is_known(name)]


def _is_known(known: set[str], name: str) -> bool:
    return name in known or normal(name) in known or _find(sys.meta_path, name) is not None
