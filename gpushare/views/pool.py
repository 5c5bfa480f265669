"""What jobs hold together over time, as rows of block characters: one colour per job, one on top of the other."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from gpushare.units import format_bytes
from gpushare.views.names import shortened

COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "red")
_BARS = " ▁▂▃▄▅▆▇█"
Column = Sequence[int]  # bytes of each job


def held_over_time(
    timeline: Sequence[Sequence[float]], jobs: int, span_s: float, width: int
) -> list[list[int]]:
    """For each of `width` equal pieces of the first `span_s` seconds what each job held when their sum was largest.

    :param timeline: (time in seconds, job, bytes that it holds from then on), in order of time.
    """
    held = [0] * jobs
    columns: list[list[int] | None] = [None] * width
    at = 0
    for time_s, index, held_bytes in timeline:
        column = int(time_s / max(span_s, 1e-9) * width)
        if column >= width:
            break
        for empty in range(at, column + 1):  # what was held goes on until now
            columns[empty] = _larger(columns[empty], held)
        held[int(index)] = int(held_bytes)
        columns[column] = _larger(columns[column], held)
        at = column
    for empty in range(at, width):
        columns[empty] = _larger(columns[empty], held)
    return [column or [0] * jobs for column in columns]


def pool_picture(
    columns: Sequence[Column],
    names: Sequence[str],
    top_bytes: int,
    *,
    height: int,
    span_s: float,
    coloured: bool,
) -> list[Text]:
    """`height` rows under a line at `top_bytes`, a scale of time, and a row of its own for each job.

    :param coloured: whether colours are seen; if not, a cell tells only how far it is filled.
    """
    lines = [Text(f"{'budget':>11} +{'-' * len(columns)}")]
    for row in range(height, 0, -1):
        scale = format_bytes(top_bytes * row // height) if row in (height, height // 2) else ""
        line = Text(f"{scale:>11} |")
        for column in columns:
            line.append(*_cell(column, top_bytes / height, row - 1, coloured))
        lines.append(line)
    lines.append(Text(f"{'':11} +{'-' * len(columns)}"))
    lines.append(Text(f"{'':13}0{f'{span_s:.3g} s':>{len(columns) - 1}}"))
    lines += [_strip(columns, i, name) for i, name in enumerate(names)]
    return lines


def _larger(known: list[int] | None, held: list[int]) -> list[int]:
    return list(held) if known is None or sum(held) > sum(known) else known


def _cell(column: Column, row_bytes: float, row: int, coloured: bool) -> tuple[str, str]:
    """The two jobs that fill most of a cell share it: the lower one in front, the upper one behind it."""
    parts = _parts(column, row_bytes, row)
    filled = sum(share for share, _ in parts)
    if not parts or round(8 * filled) == 0:
        return " ", ""
    (first, lower), *rest = sorted(sorted(parts, reverse=True)[:2], key=lambda part: part[1])
    if not coloured or not rest or filled < 0.9:
        return _BARS[min(8, round(8 * filled))], _colour(max(parts)[1])
    return _BARS[max(1, min(7, round(8 * first)))], f"{_colour(lower)} on {_colour(rest[0][1])}"


def _parts(column: Column, row_bytes: float, row: int) -> list[tuple[float, int]]:
    """Share of the cell that each job fills, and the job; only those that do, the lowest first."""
    low, high, bottom = row * row_bytes, (row + 1) * row_bytes, 0.0
    parts = []
    for i, held in enumerate(column):
        share = (min(bottom + held, high) - max(bottom, low)) / row_bytes
        if share > 0:
            parts.append((share, i))
        bottom += held
    return parts


def _strip(columns: Sequence[Column], index: int, name: str) -> Text:
    most = max((column[index] for column in columns), default=0) or 1
    bars = "".join(_BARS[round(8 * column[index] / most)] for column in columns)
    return Text(f"{shortened(name, 11):>11} |").append(bars, _colour(index))


def _colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]
