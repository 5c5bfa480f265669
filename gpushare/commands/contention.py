"""What jobs do to each other's pace: by what the user says, by runs of the pair, by their profiles and other pairs."""

from __future__ import annotations

import itertools
import os
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from gpushare.launcher.plan import PAGE_BYTES
from gpushare.launcher.run import Run
from gpushare.profiles import Profile, pairs, store
from gpushare.simulation import Contention, SimulatedJob, from_profile, learning
from gpushare.simulation.contention import forecast, rest_of
from gpushare.simulation.job import steps_for

_LEAST_S = 2.0  # in a mode, for its yield to count
_PAIRS = 64  # others, the newest: what a machine does to jobs changes
_ABOUT = 1.05  # cores that jobs keep busy are measured no better
DEFAULT, OTHERS, MEASURED, LEARNED, GIVEN = "default", "others", "measured", "learned", "given"


def cores_here() -> float:
    """Cores that this process may use."""
    return float(len(os.sched_getaffinity(0)))


def threads_of(profile: Profile, cores: float) -> float:
    """Cores that the job keeps busy: as measured, else the threads that torch would take."""
    if profile.cores_busy:
        return max(0.01, profile.cores_busy)
    told = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return float(told) if told.isdigit() and int(told) > 0 else cores


@dataclass(frozen=True)
class KnownFactor:
    """Of jobs `first` and `second`, by index: how many times longer each takes beside the other.

    `source`: given; learned (from `runs` runs); measured (by what each alone takes and feels, and by the rest of
    `others` other pairs that runs have taught something of); others (by the factors of those); default. `gil`: the part
    of a measured factor for which either waits for the GIL. `rest`: what the others add to it.
    """

    first: int
    second: int
    factor: float
    factor_of_second: float
    source: str
    runs: int = 0
    gil: float = 0.0
    rest: float = 0.0
    others: int = 0

    def to_json(self) -> dict[str, Any]:
        """As a plan has it."""
        return asdict(self)


def known_factors(
    profiles: Sequence[Profile], threads: Sequence[float], cores: float, given: float | None
) -> list[KnownFactor]:
    """Of each pair of jobs: what the user gave, else what runs of both taught, else what their profiles and runs of
    other pairs say, else 1.

    :param threads: cores that each job is planned to keep busy, of `cores`.
    """
    indices = list(itertools.combinations(range(len(profiles)), 2))
    if given is not None:
        return [KnownFactor(i, j, given, given, GIVEN) for i, j in indices]
    taught = _taught()
    found = []
    for i, j in indices:
        first, second = profiles[i], profiles[j]
        learned = pairs.find(first.key, second.key) if first.key and second.key else None
        if learned:
            found.append(KnownFactor(i, j, learned.factor, learned.factor, LEARNED, learned.runs))
        else:
            crowded = _crowded(threads[i], threads[j], cores)
            alike = [t for t in taught if t.crowded == crowded and t.device == first.device == second.device]
            found.append(_by_profiles(i, j, profiles, alike))
    return found


@dataclass(frozen=True)
class _Taught:
    """What runs have shown of a pair of one device: `crowded` if both want more cores than there are; the factor, and
    what of it their profiles do not foretell, None if they foretell nothing."""

    device: str
    crowded: bool
    factor: float
    rest: float | None


def _taught() -> list[_Taught]:
    found, cores = [], cores_here()
    for pair in pairs.newest(_PAIRS):
        first, second = store.load(pair.first), store.load(pair.second)
        if first and second and first.device == second.device:
            felt = [f for f in (forecast(first, second), forecast(second, first)) if f]
            factor = pair.factor.factor
            rest = rest_of(factor, felt) if len(felt) == 2 else None
            crowded = _crowded(threads_of(first, cores), threads_of(second, cores), cores)
            found.append(_Taught(first.device, crowded, factor, rest))
    return found


def _crowded(first_threads: float, second_threads: float, cores: float) -> bool:
    return first_threads + second_threads > cores * _ABOUT


def _by_profiles(i: int, j: int, profiles: Sequence[Profile], alike: Sequence[_Taught]) -> KnownFactor:
    """:param alike: pairs of the same device that want more cores than there are, or not, as this one does."""
    pair = profiles[i], profiles[j]
    first, second = forecast(*pair), forecast(*pair[::-1])
    if first is None or second is None:
        factor = statistics.median(t.factor for t in alike) if alike else 1.0
        return KnownFactor(i, j, factor, factor, OTHERS if alike else DEFAULT, others=len(alike))
    rests = [t.rest for t in alike if t.rest is not None]
    rest = statistics.median(rests) if rests else 0.0
    factors = replace(first, rest=rest).factor, replace(second, rest=rest).factor
    return KnownFactor(i, j, *factors, MEASURED, gil=first.gil, rest=rest, others=len(rests))


def contention_of(cores: float, given: float | None, known: Sequence[KnownFactor]) -> Contention:
    """As the simulator takes it."""
    factors = {(k.first, k.second): k.factor - k.gil for k in known}
    factors |= {(k.second, k.first): k.factor_of_second - k.gil for k in known}
    waits = {pair: k.gil for k in known for pair in ((k.first, k.second), (k.second, k.first))}
    return Contention(cores, given or 1.0, factors, waits)


def learn_from(work: Run) -> dict[str, Any] | None:
    """Keep the factor of the pair that a run has shown; what the summary says of it.

    None if the run was not of two jobs that shared one budget for a while, without a stop, both to a good end.
    """
    modes = work.yields.get("modes") or {}
    sharing = {name: m for name, m in modes.items() if name != "temporal" and m["yield"] is not None}
    keys = work.keys
    if len(keys) != 2 or work.exit_code or len(work.profiles) != 2 or not sharing or None in keys:
        return None
    if work.stopped_s or work.budget_bytes != work.plan.budget_bytes:
        return None
    mode, longest = max(sharing.items(), key=lambda item: float(item[1]["seconds"]))
    if longest["seconds"] < _LEAST_S:
        return None
    counts = learning.counts_for([work.profiles[i].mean_iteration_s for i in range(2)])
    steps = steps_for(counts, learning.MOST_EVENTS)
    jobs = [_as_counted(work, i, steps) for i in range(2)]
    factor = learning.factor_of(
        jobs,
        mode=mode,
        measured=longest["yield"],
        budget_bytes=min(work.plan.budget_bytes, 2 * sum(j.peak_bytes for j in jobs) + 64 * PAGE_BYTES),
        cores=cores_here(),
        page_bytes=PAGE_BYTES,
        split_bytes=work.plan.split_bytes,
    )
    if factor is None:
        return None
    kept = pairs.learn(str(keys[0]), str(keys[1]), factor)
    return {"this_run": factor, "factor": kept.factor, "runs": kept.runs}


def _as_counted(work: Run, index: int, steps: int) -> SimulatedJob:
    """The job with the solo time by which the run's yields were counted."""
    profile, result = work.profiles[index], work.results[index]
    solo_s = work.yields["solo_s"].get(str(result.account))
    mean_s = (
        profile.iteration_s if profile.kinds else profile.mean_iteration_s
    )  # kinds are told by the first one
    scale = solo_s / mean_s if solo_s and mean_s else 1.0
    times = tuple(t * scale for t in profile.time_s)
    counted = replace(profile.at_pace(profile.iteration_s * scale), time_s=times)
    return from_profile(
        counted, result.name, iterations=1, threads=threads_of(profile, cores_here()), steps=steps
    )
