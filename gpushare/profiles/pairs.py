"""How much slower the jobs of a pair compute beside each other, learned from runs and kept beside their profiles."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from gpushare.profiles import store

FORMAT, VERSION = "gpushare-pair", 2
_REMEMBERED = 8  # runs; the share of a new one never gets less than one in so many
_MOST = 16.0


@dataclass(frozen=True)
class PairFactor:
    """By what the time of an iteration is multiplied while the other job computes; the mean of `runs` runs."""

    factor: float
    runs: int


@dataclass(frozen=True)
class LearnedPair:
    """Of the jobs whose profiles have these keys."""

    first: str
    second: str
    factor: PairFactor


def path_for(first: str, second: str) -> Path:
    """File of the pair of two profiles, which are named by their keys (`store.key_for`) in any order."""
    name = hashlib.sha256(" ".join(sorted((first, second))).encode()).hexdigest()
    return store.directory() / "pairs" / f"{name}.json"


def find(first: str, second: str) -> PairFactor | None:
    """What is known of the pair; None if there is nothing, or nothing that this version reads."""
    found = _read(path_for(first, second))
    return found.factor if found else None


def newest(count: int) -> list[LearnedPair]:
    """The pairs that runs have last shown something of, up to `count`."""
    try:
        files = [(path.stat().st_mtime_ns, path) for path in path_for("", "").parent.glob("*.json")]
    except OSError:
        return []
    read = (_read(path) for _, path in sorted(files, reverse=True)[:count])
    return [pair for pair in read if pair]


def learn(first: str, second: str, factor: float) -> PairFactor:
    """A run has shown this factor: what is known of the pair now. It is kept, if that can be done."""
    factor = min(_MOST, max(1.0, factor))
    before = find(first, second)
    runs = before.runs + 1 if before else 1
    mean = before.factor + (factor - before.factor) / min(runs, _REMEMBERED) if before else factor
    found = LearnedPair(first, second, PairFactor(mean, runs))
    _save(path_for(first, second), found)
    return found.factor


def _read(path: Path) -> LearnedPair | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if (content["format"], content["version"]) != (FORMAT, VERSION):
            return None
        found = PairFactor(float(content["factor"]), int(content["runs"]))
        pair = LearnedPair(str(content["first"]), str(content["second"]), found)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return pair if 1 <= found.factor <= _MOST and found.runs > 0 else None


def _save(path: Path, pair: LearnedPair) -> None:
    part = path.with_suffix(".part")
    content = {"format": FORMAT, "version": VERSION, "first": pair.first, "second": pair.second}
    content |= {"factor": pair.factor.factor, "runs": pair.factor.runs}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(content), encoding="utf-8")
        part.replace(path)
    except OSError:
        return
