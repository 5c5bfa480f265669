"""Sizes in the words people use: KB is 1000 bytes, KiB is 1024."""

from __future__ import annotations

import re

from gpushare.errors import UsageError

_FACTORS = {"": 1, "B": 1}
_FACTORS |= {f"{p}B": 1000 ** (i + 1) for i, p in enumerate("KMGT")}
_FACTORS |= {f"{p}IB": 1024 ** (i + 1) for i, p in enumerate("KMGT")}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)")
_FORMS = "a number of bytes, KB, MB, GB, TB (powers of 1000), KiB, MiB, GiB or TiB"
_MOST = 1 << 60


def parse_bytes(text: str, *, instead: str = "") -> int:
    """Bytes that `text` means, such as "30GB" or "1.5GiB".

    :param instead: what else the caller takes, for the message.
    :raises UsageError: it can't be read.
    """
    match = _SIZE.fullmatch(text.strip())
    if not match or match[2].upper() not in _FACTORS:
        raise UsageError(f"a size must be {_FORMS}{instead}, but got {text!r}")
    return int(min(_MOST, float(match[1]) * _FACTORS[match[2].upper()]))


def parse_budget_bytes(text: str) -> int:
    """As `parse_bytes`, where a percentage could have stood.

    :raises UsageError: it can't be read.
    """
    return parse_bytes(text, instead=", or a percentage such as 50%")


def parse_budget(text: str, device_bytes: int) -> int:
    """A budget in bytes; percentages are of `device_bytes`, the device's memory.

    :raises UsageError: unreadable, zero, or larger than the device.
    """
    percentage = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*", text)
    share = min(_MOST, float(percentage[1])) / 100 if percentage else 0.0
    budget = int(device_bytes * share) if percentage else parse_budget_bytes(text)
    if budget <= 0:
        raise UsageError(f"the budget must be more than zero, but got {text!r}")
    if budget > device_bytes:
        most, got = format_apart(device_bytes, budget)
        raise UsageError(f"the budget must be at most the device's memory, {most}, but got {text!r} ({got})")
    return budget


def format_bytes(count: int | None) -> str:
    """For reading: "512 B", "1.25 GiB", "-" for what is not known."""
    if count is None:
        return "-"
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.{2 if unit == 'GiB' else 1}f} {unit}"


def format_apart(first: int, second: int) -> tuple[str, str]:
    """Two sizes for reading, of which it matters that one is larger: in bytes where they would look the same."""
    one, other = format_bytes(first), format_bytes(second)
    return (one, other) if one != other else (f"{first} bytes", f"{second} bytes")


def format_seconds(value: float | None) -> str:
    """For reading: "1.5 ms", "12.0 s", "-" for what is not known."""
    if value is None:
        return "-"
    return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.1f} s"
