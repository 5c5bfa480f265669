"""Rounds for many jobs on one pool: when each one's iterations start so that all that run at once fit.

A time shift for two (Zico, section 5) says nothing of a third. Here all jobs take part in a round that comes again and
again: the largest first, each next one as early behind the last as the sum allows (Waterwave, algorithm 1, for
measured curves and any number of jobs). A job whose iterations are short does several of them in a round. Of the
rounds that fit the one is taken in which the most work is done per second.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import add, mul

from gpushare.scheduling.snapshot import IterationCurve

_CELLS = 64  # of a round
_FINE = 2  # cells, of an iteration whose curve is looked at; else its peak is
_ROUNDS = 24  # lengths that are tried
_EXACT = 1 + 1e-9
_SHARES = (
    1.0,
    0.5,
    0.25,
    0.0,
)  # of a round that a job with short iterations is given; one iteration at least


@dataclass(frozen=True)
class Round:
    """Job i starts `starts_s[i]` after the round does, and again `repeats[i]` - 1 times, an iteration later each."""

    length_s: float
    starts_s: tuple[float, ...]
    repeats: tuple[int, ...]


def best_round(curves: Sequence[IterationCurve], room_bytes: int) -> Round | None:
    """The round with the most work per second; None if none was found that fits."""
    spare = room_bytes - sum(curve.residue_bytes for curve in curves)
    if min(curve.duration_s for curve in curves) <= 0:
        return None
    shortest_s = max(curve.duration_s for curve in curves)
    # The longest round has them one after the other, each in whole cells.
    ratio = sum(curve.duration_s for curve in curves) / shortest_s * (1 + 2 * len(curves) / _CELLS)
    extra = [_extra_byte_seconds(curve) for curve in curves]
    best, most = None, 0.0
    for i in range(_ROUNDS + 1):
        length_s = shortest_s * ratio ** (i / _ROUNDS)
        for share in _SHARES:
            repeats = tuple(max(1, int(share * length_s / c.duration_s + 1e-6)) for c in curves)
            work = work_per_s(curves, repeats, length_s)
            if work <= most * 1.001 or sum(map(mul, repeats, extra)) > spare * length_s * _EXACT:
                continue
            if starts := _place_all(curves, repeats, length_s, spare):
                best, most = Round(length_s, starts, repeats), work
    return best


def work_per_s(curves: Sequence[IterationCurve], repeats: Sequence[int], length_s: float) -> float:
    """Solo seconds of iterations in a second of a round: its forecast STP."""
    return sum(n * c.duration_s for n, c in zip(repeats, curves, strict=True)) / length_s


def _place_all(
    curves: Sequence[IterationCurve], repeats: Sequence[int], length_s: float, spare_bytes: int
) -> tuple[float, ...] | None:
    """Starts of the jobs, placed one by one, the largest first; None if one finds no place."""
    cells = [_cells(c, n, length_s) for c, n in zip(curves, repeats, strict=True)]
    held, starts, at = [0] * _CELLS, [0.0] * len(curves), 0
    for i in sorted(range(len(curves)), key=lambda i: curves[i].peak_bytes, reverse=True):
        place = _first_place(held, cells[i], at, spare_bytes)
        if place is None:
            return None
        at = place
        held = list(map(add, held, _turned(cells[i], place)))
        starts[i] = place * length_s / _CELLS
    return tuple(starts)


def _first_place(held: list[int], cells: tuple[int, ...], begin: int, spare_bytes: int) -> int | None:
    for i in range(_CELLS):
        place = (begin + i) % _CELLS
        if max(map(add, held, _turned(cells, place))) <= spare_bytes:
            return place
    return None


def _turned(cells: tuple[int, ...], by: int) -> tuple[int, ...]:
    return cells[-by:] + cells[:-by] if by else cells


@lru_cache(maxsize=64)  # equal jobs have equal cells
def _cells(curve: IterationCurve, repeats: int, length_s: float) -> tuple[int, ...]:
    """The most beyond its residue that the job holds in each cell of a round that it begins."""
    cell_s = length_s / _CELLS
    if curve.duration_s < _FINE * cell_s:  # its ups and downs are finer than cells
        cells = min(_CELLS, math.ceil(repeats * curve.duration_s / cell_s))
        return (curve.peak_bytes - curve.residue_bytes,) * cells + (0,) * (_CELLS - cells)
    found, steps = [0] * _CELLS, _extra_in_steps(curve)
    for repeat in range(repeats):
        begun_s = repeat * curve.duration_s
        for extra, begin_s, end_s in steps:
            first, last = int((begun_s + begin_s) / cell_s), int((begun_s + end_s) / cell_s)
            for cell in range(first, min(last, _CELLS - 1) + 1):
                if extra > found[cell]:
                    found[cell] = extra
    return tuple(found)


def _extra_in_steps(curve: IterationCurve) -> list[tuple[int, float, float]]:
    """Of each step, what is held beyond the residue, and from when to when."""
    extra = [held - curve.residue_bytes for held in curve.held_bytes]
    return list(zip(extra, curve.time_s, [*curve.time_s[1:], curve.duration_s], strict=True))


def _extra_byte_seconds(curve: IterationCurve) -> float:
    """What an iteration holds beyond its residue, over its time: a round must have as much room at least."""
    return sum(extra * max(0.0, end - begin) for extra, begin, end in _extra_in_steps(curve))


def step_at(curve: IterationCurve, time_s: float) -> int:
    """The step that the iteration is in at this time after its start."""
    return max(0, bisect_right(curve.time_s, time_s + 1e-9) - 1)
