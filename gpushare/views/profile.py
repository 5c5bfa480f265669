"""A profile for reading: its figures, and its curve as a picture."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from gpushare.profiles import Profile, segments
from gpushare.units import format_bytes

_BARS = " ▁▂▃▄▅▆▇█"
SPLIT_BYTES = 64 << 20  # of the segments that the table counts


def render_profile(profile: Profile, console: Console) -> None:
    """Print table and curve."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    for name, value in rows(profile):
        table.add_row(name, value)
    console.print(table)
    width = max(10, min(console.width, 100) - 14)  # narrow terminals wrap it
    for line in curve_picture(profile, width, 8):
        console.print(line, markup=False, highlight=False)


def rows(profile: Profile) -> list[tuple[str, str]]:
    """The table's rows."""
    return [
        ("persistent at peak", format_bytes(profile.persistent_bytes)),
        ("activation at peak", format_bytes(profile.activation_bytes)),
        ("temporary at peak", format_bytes(profile.temporary_bytes)),
        ("peak live", format_bytes(profile.peak_live_bytes)),
        ("peak held", format_bytes(profile.peak_held_bytes)),
        ("residue", format_bytes(profile.residue_bytes)),
        ("iteration", f"{profile.iteration_s * 1000:.1f} ms"),
        *_spread(profile),
        *_kinds(profile),
        *_shares(profile),
        ("allocations", str(len(profile.held_bytes))),
        (f"segments of {format_bytes(SPLIT_BYTES)}", str(len(segments(profile.held_bytes, SPLIT_BYTES)))),
    ]


def _spread(profile: Profile) -> list[tuple[str, str]]:
    """Of iterations alone; the first row has that of a short one."""
    if not profile.spread:
        return []
    shortest_ms, longest_ms = (
        factor * profile.iteration_s * 1000 for factor in (profile.spread[0], profile.spread[-1])
    )
    mean_ms = profile.mean_iteration_s * 1000
    return [("iterations vary", f"{shortest_ms:.1f} to {longest_ms:.1f} ms, {mean_ms:.1f} ms on the mean")]


def _kinds(profile: Profile) -> list[tuple[str, str]]:
    seen = sum(kind.seen for kind in profile.kinds) or 1
    return [
        (f"kind {number} of iterations", f"{kind.seen / seen:.0%} of them, {kind.iteration_s * 1000:.1f} ms")
        for number, kind in enumerate(profile.kinds, 1)
    ]


def _shares(profile: Profile) -> list[tuple[str, str]]:
    found = []
    if profile.cores_busy is not None:
        found.append(("cores busy", f"{profile.cores_busy:.2f}"))
    if profile.gil_share is not None:
        found.append(("GIL held", f"{profile.gil_share:.0%} of the time"))
    if profile.sensitivity is not None and profile.pressure is not None:
        found.append(("beside a thread that copies memory", f"{profile.sensitivity:.0%} slower"))
        found.append(("slows such a thread", f"{profile.pressure:.0%} of what another does"))
    return found


def curve_picture(profile: Profile, width: int, height: int) -> list[str]:
    """Held bytes over time, `height` lines of block characters under a scale."""
    columns = _columns(profile, width)
    top = max(1, profile.peak_held_bytes)
    lines = []
    for row in range(height, 0, -1):
        low = top * (row - 1) / height
        cells = [_BARS[max(0, min(8, round((c - low) / (top / height) * 8)))] for c in columns]
        scale = format_bytes(top * row // height) if row in (height, 1) else ""
        lines.append(f"{scale:>11} |{''.join(cells)}")
    end = f"{profile.iteration_s * 1000:.0f} ms"
    lines.append(" " * 12 + "+" + "-" * width)
    lines.append(" " * 13 + "0" + end.rjust(width - 1))
    return lines


def _columns(profile: Profile, width: int) -> list[int]:
    """The most held in each of `width` equal pieces of the iteration's time."""
    columns = [0] * width
    span = max(profile.iteration_s, 1e-9)
    last, at = 0, 0
    for time_s, held in zip(profile.time_s, profile.held_bytes, strict=True):
        column = min(width - 1, int(time_s / span * width))
        for empty in range(at, column):
            columns[empty] = max(columns[empty], last)
        columns[column] = max(columns[column], held)
        last, at = held, column
    for empty in range(at, width):
        columns[empty] = max(columns[empty], last)
    return columns
