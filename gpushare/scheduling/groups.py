"""Which jobs take turns with each other while all others run beside them.

Running together slows jobs down in pairs: two that each want the GIL all the time do, one of them and one that computes
without it do not. What is measured is how fast each job is beside all others. That is put down to pairs as if each
had a share of what slows it down and the other one, a product of a number of each: so it is with shares of the GIL or
of memory bandwidth that both want (`simulation.contention`). For three jobs it is the only symmetric way. What a job is
slower by than that can tell (it feels more than the others together) is put down to the others by how slow they are.

Groups come of joining, again and again, the two whose jobs had better not run side by side; those that are forecast to
be best on the way are taken (three that slow each other down may gain what two of them do not). It is a forecast and no
more: the mode is measured as any other (`scheduling.pace`).

Who takes turns advances by its part of the time only, and who is in no group all the time. That is fair where it was
the others of the group that slowed it down. Groups that slow a job down, and make the jobs' shares less even than they
are side by side, put it off: of equal jobs, which noise alone tells apart, one for another. Such groups are none where
running side by side gains much; where it does not, the forecast may be as wrong about that, and they are measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from gpushare.scheduling.efficiency import efficiency

Groups = tuple[frozenset[int], ...]  # of accounts, two or more in each
Rates = Mapping[int, float]  # of each account, in solo seconds per second
Matrix = list[list[float]]  # by indices of jobs

_HALVINGS, _FAR = 60, 1e6
_LEAST_RATE = 0.01
_MOST = 0.98  # of what the others feel, that a symmetric share can be
_CLEARLY = 1.001  # better: the fewer take turns the better
_AS_BEFORE = 0.85  # of a rate, or of how even they were
_GAINS_MUCH = 1.25  # an efficiency
_JOINED, _TRIED = 12, 8  # jobs that are slowed down most; pairs of groups at a time, likewise


@dataclass(frozen=True)
class Found:
    """The efficiency of these groups, as forecast."""

    groups: Groups
    efficiency: float


def best_groups(rates: Rates, off: Rates) -> Found | None:
    """The groups that are forecast to be best, at least two jobs of which run side by side; None if there are none.

    :param rates: all running side by side.
    :param off: how far each of these may be off.
    """
    accounts = sorted(rates)
    slowed = slowdowns([rates[account] for account in accounts])
    members = best = [[i] for i in range(len(accounts))]
    most, exactly = efficiency(_forecast(best, slowed)), dict.fromkeys(accounts, 0.0)
    gains_much = most > _GAINS_MUCH

    def may_be(forecast: Sequence[float]) -> bool:
        return not gains_much or is_fair(dict(zip(accounts, forecast, strict=True)), exactly, (rates, off))

    while len(members) > 2 and (pairs := _worst_pairs(members, slowed)):
        joined = [_joined(members, i, j) for i, j in pairs]
        members = max(joined, key=lambda m: efficiency(_forecast(m, slowed)))
        forecast = _forecast(members, slowed)
        if efficiency(forecast) > most * _CLEARLY and may_be(forecast):
            best, most = members, efficiency(forecast)
    groups = (frozenset(accounts[i] for i in m) for m in best if len(m) > 1)
    in_order = tuple(sorted(groups, key=min))
    return Found(in_order, most) if in_order else None


def evenness(rates: Rates, off: Rates) -> float:
    """The slowest job's rate over the fastest one's, as far as can be told: 1 where they may be equal.

    :param off: how far each rate may be off.
    """
    slowest = min(rate + off[account] for account, rate in rates.items())
    fastest = max(rate - off[account] for account, rate in rates.items())
    return max(0.0, slowest / fastest) if fastest > max(0.0, slowest) else 1.0


def is_fair(rates: Rates, off: Rates, before: tuple[Rates, Rates]) -> bool:
    """Whether no job is put off: each is about as fast as it was before, or they are about as even.

    :param off: how far each rate may be off; `before` has both of then.
    """
    were, were_off = before
    fastest = {account: rate + were_off[account] for account, rate in were.items()}  # that it may have been
    if all(rate + off[account] >= _AS_BEFORE * fastest[account] for account, rate in rates.items()):
        return True
    return evenness(rates, off) >= _AS_BEFORE * evenness(were, were_off)


def slowdowns(rates: Sequence[float]) -> Matrix:
    """By how much of its solo time each job (row) is slower because of each other one.

    A job at a rate of r takes 1 / r times as long, and its row adds up to what is above 1.
    """
    wanted = [max(0.0, 1 / max(rate, _LEAST_RATE) - 1) for rate in rates]
    others = [sum(wanted) - w for w in wanted]
    shared = _products([min(w, _MOST * o) for w, o in zip(wanted, others, strict=True)])
    for i, row in enumerate(shared):
        rest = wanted[i] - sum(row)
        for j in range(len(row)):
            if j != i:
                part = wanted[j] / others[i] if others[i] > 0 else 1 / (len(row) - 1)
                row[j] = max(0.0, row[j] + rest * part)
    return shared


def _products(wanted: Sequence[float]) -> Matrix:
    """Symmetric, of one number for each job, with rows that add up to these sums, none of them above the others'.

    With T the sum of all numbers d, each one solves d (T - d) = w. That has two answers; at most one job, which wants
    the most, has the larger one. T is found by halving.
    """
    most = max(range(len(wanted)), key=lambda i: wanted[i])
    least = 2 * math.sqrt(wanted[most])
    larger = sum(_smaller(least, w) for w in wanted) < least

    def numbers(total: float) -> list[float]:
        own = [_smaller(total, w) for w in wanted]
        if larger:
            own[most] = total - own[most]
        return own

    def too_small(total: float) -> bool:
        return (sum(numbers(total)) > total) != larger

    below, above = least, max(least, 1e-9)
    while too_small(above) and above < least * _FAR:
        below, above = above, 2 * above
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        below, above = (middle, above) if too_small(middle) else (below, middle)
    own = numbers(above)
    return [[0.0 if i == j else own[i] * own[j] for j in range(len(own))] for i in range(len(own))]


def _smaller(total: float, wanted: float) -> float:
    root = math.sqrt(max(0.0, total * total - 4 * wanted))
    return 2 * wanted / (total + root) if wanted else 0.0


def _joined(members: list[list[int]], i: int, j: int) -> list[list[int]]:
    rest = [m for k, m in enumerate(members) if k not in (i, j)]
    return [*rest, members[i] + members[j]]


def _worst_pairs(members: list[list[int]], slowed: Matrix) -> list[tuple[int, int]]:
    def between(pair: tuple[int, int]) -> float:
        return sum(slowed[i][j] + slowed[j][i] for i in members[pair[0]] for j in members[pair[1]])

    worst = set(sorted(range(len(slowed)), key=lambda i: sum(slowed[i]), reverse=True)[:_JOINED])
    may_join = [k for k, m in enumerate(members) if worst.issuperset(m)]
    return sorted(combinations(may_join, 2), key=between, reverse=True)[:_TRIED]


def _forecast(members: Sequence[Sequence[int]], slowed: Matrix) -> list[float]:
    """Rates, by indices of jobs: each runs its part of the time, beside one job of each other group."""
    rates = [0.0] * len(slowed)
    for mine in members:
        for i in mine:
            others = (other for other in members if other is not mine)
            beside = sum(sum(slowed[i][j] for j in other) / len(other) for other in others)
            rates[i] = 1 / (1 + beside) / len(mine)
    return rates
