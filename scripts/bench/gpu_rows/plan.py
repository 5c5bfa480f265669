"""Which rows there are, and in which order: where time is short there is something of every kind."""

from functools import partial
from itertools import zip_longest

from . import allocation, alone, batch, equal, launch_bound, pair
from .bench import Bench
from .row import Task
from .workloads import LAUNCH_BOUND

FIRST_FACTOR = 1.6
KINDS = ("pair", "equal", "alone", "allocation", "launch-bound", "batch", "budgets")


def tasks(
    bench: Bench,
    kinds: list[str],
    *,
    alone_of: list[str],
    pairs: list[str],
    factors: list[float],
    replays: list[str],
    batches: list[str],
    batch_guess: int,
) -> list[Task]:
    """Rows of the given kinds: the first of each, the most valuable kind first, then the second of each, and so on.

    Pairs are at 1.6 first (or what of `factors` is nearest)."""
    first = min(factors, key=lambda factor: abs(factor - FIRST_FACTOR))
    found = {
        "pair": _pairs("pair", bench, pairs, [first]),
        "equal": [
            Task("equal", f"{names} equal", equal.WHAT, partial(equal.measure, bench, names, first))
            for names in pairs
        ],
        "alone": [Task("alone", name, alone.WHAT, partial(alone.measure, bench, name)) for name in alone_of],
        "allocation": [
            Task("allocation", "allocations", allocation.WHAT, partial(allocation.measure, bench, replays))
        ],
        "launch-bound": [
            Task("launch-bound", LAUNCH_BOUND, launch_bound.WHAT, partial(launch_bound.measure, bench))
        ],
        "batch": [
            Task("batch", f"{name} largest", batch.WHAT, partial(batch.measure, bench, name, batch_guess))
            for name in batches
        ],
        "budgets": _pairs("budgets", bench, pairs, [factor for factor in factors if factor != first]),
    }
    rounds = zip_longest(*(found[kind] for kind in KINDS if kind in kinds))
    return [task for tasks in rounds for task in tasks if task]


def _pairs(kind: str, bench: Bench, pairs: list[str], factors: list[float]) -> list[Task]:
    return [
        Task(kind, f"{names} at {factor:g}", pair.WHAT, partial(pair.measure, bench, names, factor, 0))
        for names in pairs
        for factor in factors
    ]
