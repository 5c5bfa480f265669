import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare.errors import UsageError
from gpushare.units import format_apart, format_bytes, format_seconds, parse_budget, parse_bytes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1234", 1234),
        ("30GB", 30 * 10**9),
        ("1.5GiB", 3 << 29),
        ("2 kb", 2000),
        ("7MiB", 7 << 20),
        ("5B", 5),
    ],
)
def test_sizes(text: str, expected: int) -> None:
    assert parse_bytes(text) == expected


@pytest.mark.parametrize("text", ["30XB", "", "GB", "-1GB", "1e9", "1..5GB", "5%%"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(UsageError, match=r"a size must be [^%]*, but got"):
        parse_bytes(text)


def test_budget() -> None:
    assert parse_budget("50%", 1000) == 500
    for size in ("9" * 400, "9" * 400 + "%"):
        with pytest.raises(UsageError, match="at most the device's memory"):
            parse_budget(size, 1000)
    with pytest.raises(UsageError, match="or a percentage such as 50%, but got '5x'"):
        parse_budget("5x", 1000)
    with pytest.raises(UsageError, match="more than zero"):
        parse_budget("0", 1000)
    with pytest.raises(UsageError, match="at most the device's memory"):
        parse_budget("1001", 1000)


@given(st.integers(min_value=0, max_value=1 << 50))
def test_formatted_size_is_close(count: int) -> None:
    text = format_bytes(count)
    assert abs(parse_bytes(text) - count) <= max(0.051 * 1024, 0.051 * count)


@pytest.mark.parametrize(
    ("first", "second", "texts"),
    [
        (32 << 20, 16 << 20, ("32.0 MiB", "16.0 MiB")),
        (32 << 20, (32 << 20) - 1, ("33554432 bytes", "33554431 bytes")),
        (5, 5, ("5 bytes", "5 bytes")),
    ],
)
def test_sizes_that_differ_look_different(first: int, second: int, texts: tuple[str, str]) -> None:
    assert format_apart(first, second) == texts


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (0.0, "0.0 ms"), (0.0123, "12.3 ms"), (1.0, "1.0 s"), (83.25, "83.2 s")],
)
def test_formatted_seconds(seconds: float | None, text: str) -> None:
    assert format_seconds(seconds) == text
