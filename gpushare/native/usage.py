"""What accounts use: memory in figures and pieces, and frees that fit no block."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from gpushare.native.library import BadFree, Memory, NativeError, Piece, last_error, lib

_NO_LIMIT = 2**64 - 1
FREE, USED, USED_ELSEWHERE = 0, 1, 2  # of a piece
FREED_TWICE, FREED_INSIDE = 1, 2  # kinds of bad frees; 3: no block is known there


@dataclass(frozen=True)
class BadFreeReport:
    """A free that fits no block. `bytes` is 0 if no block is known; accounts as numbers, 0 is `shared`."""

    address: int
    bytes: int
    offset: int
    iteration: int
    kind: int
    freer: int
    owner: int
    freed_by: int


def next_bad_free() -> BadFreeReport | None:
    """The next one that was not read; None if there is none."""
    found = BadFree()
    if not lib().gs_bad_free_next(ctypes.byref(found)):
        return None
    return BadFreeReport(**{field[0]: getattr(found, field[0]) for field in BadFree._fields_})


def memory(account: int) -> Memory:
    """What the account may use, uses, and has used since the last resets."""
    found = Memory()
    if lib().gs_memory_get(account, ctypes.byref(found)) != 0:
        raise NativeError(last_error())
    return found


def memory_reset_peaks(account: int) -> None:
    """Peaks of `memory` count from now on."""
    lib().gs_memory_reset_peaks(account)


def memory_reset_totals(account: int) -> None:
    """Sums of `memory` count from now on."""
    lib().gs_memory_reset_totals(account)


def limit_set(account: int, limit_bytes: int | None) -> None:
    """The account holds no more than this from now on; None: the budget is its only limit.

    :raises NativeError: no such account.
    """
    if lib().gs_limit_set(account, _NO_LIMIT if limit_bytes is None else limit_bytes) != 0:
        raise NativeError(last_error())


def pieces(account: int) -> list[Piece]:
    """Blocks and the bytes between them, of all that the account holds, by address."""
    count: int = lib().gs_pieces(account, None, 0)
    while True:
        array = (Piece * count)()
        found: int = lib().gs_pieces(account, array, count)
        if found <= count:
            return list(array[:found])
        count = found
