from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare.errors import UsageError
from gpushare.profiles import Profile, segments

MIB = 1 << 20
PROFILE = Profile(
    "a.py", "2.13.0", "cpu", 2 * MIB, MIB, 3 * MIB, MIB, 6 * MIB, 5 * MIB, 2 * MIB, 0.3,
    (2 * MIB, 6 * MIB, 4 * MIB), (0.0, 0.1, 0.3),
)  # fmt: skip


def test_a_file_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "p.json"
    PROFILE.save(path)
    assert Profile.load(path) == PROFILE


def test_other_versions_are_refused_with_both(tmp_path: Path) -> None:
    content = {**PROFILE.to_json(), "version": 7}
    with pytest.raises(UsageError, match="version 7, this gpushare reads 1"):
        Profile.from_json(content, "x")
    with pytest.raises(UsageError, match="not a gpushare profile"):
        Profile.from_json({}, "x")
    (tmp_path / "x").write_text("{")
    with pytest.raises(UsageError, match="damaged"):
        Profile.load(tmp_path / "x")
    broken = replace(PROFILE).to_json()
    del broken["residue_bytes"]
    with pytest.raises(UsageError, match="damaged"):
        Profile.from_json(broken, "x")


@given(st.lists(st.integers(0, 100), max_size=60), st.integers(1, 50))
def test_segments_cover_the_curve_once(held: list[int], split: int) -> None:
    pieces = segments(held, split)
    assert [i for first, end in pieces for i in range(first, end)] == list(range(len(held)))
    for first, end in pieces[:-1]:
        inside = sum(abs(held[i] - held[i - 1]) for i in range(first + 1, end))
        assert inside < split
