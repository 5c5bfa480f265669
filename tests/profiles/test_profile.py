import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare.errors import UsageError
from gpushare.profiles import VERSION, IterationKind, Profile, segments, store

MIB = 1 << 20
PROFILE = Profile(
    "a.py", "2.13.0", "cpu", 2 * MIB, MIB, 3 * MIB, MIB, 6 * MIB, 5 * MIB, 2 * MIB, 0.3,
    (2 * MIB, 6 * MIB, 4 * MIB), (0.0, 0.1, 0.3),
)  # fmt: skip
LARGE = IterationKind((0, 1), (2 * MIB, 6 * MIB), (0.0, 0.2), 3, 2 * MIB, 0.3, 10, (1, 9))
SMALL = IterationKind((0,), (3 * MIB,), (0.0,), 2, 2 * MIB, 0.1, 30, (9, 21))
KINDS = replace(PROFILE, kinds=(LARGE, SMALL))


def test_a_file_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "p.json"
    for profile in (PROFILE, KINDS):
        profile.save(path)
        assert Profile.load(path) == profile


def test_other_versions_are_refused_with_both(tmp_path: Path) -> None:
    content = {**PROFILE.to_json(), "version": 7}
    with pytest.raises(UsageError, match="version 7, this gpushare reads 1, 2, 3, 4, 5 and 6"):
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


def test_files_of_version_1_have_no_shares() -> None:
    content = {**PROFILE.to_json(), "version": 1}
    for share in ("cores_busy", "gil_share", "sensitivity", "pressure", "spread", "key"):  # came later
        del content[share]
    assert Profile.from_json(content, "x") == PROFILE
    assert PROFILE.cores_busy is None


def test_files_of_version_2_have_no_kinds() -> None:
    content = {**KINDS.to_json(), "version": 2}
    del content["kinds"]
    assert Profile.from_json(content, "x") == PROFILE


def test_files_of_version_3_have_a_bound_that_is_no_longer_read() -> None:
    content = {**KINDS.to_json(), "version": 3, "python_share": 0.9}
    assert Profile.from_json(content, "x") == KINDS


def test_files_of_version_4_have_no_spread() -> None:
    content = {**KINDS.to_json(), "version": 4}
    del content["spread"]
    assert Profile.from_json(content, "x") == KINDS


def test_files_of_version_5_do_not_say_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = {**KINDS.to_json(), "version": 5}
    del content["key"]
    assert Profile.from_json(content, "x") == KINDS and KINDS.key is None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = store.save("k", KINDS)
    path.write_text(json.dumps(content))
    assert store.load("k") == replace(KINDS, key="k")  # where it is kept tells
    assert VERSION == 6


def test_iterations_are_longer_than_a_short_one() -> None:
    spread = replace(PROFILE, spread=(0.9, 1.0, 1.7))
    assert spread.mean_iteration_s == pytest.approx(1.2 * PROFILE.iteration_s)
    assert Profile.from_json(spread.to_json(), "x") == spread
    beside = replace(PROFILE, residue_bytes=1)
    assert beside.refining(replace(spread, cores_busy=1.0)).spread == (0.9, 1.0, 1.7)


def test_what_was_measured_alone_is_kept() -> None:
    alone = replace(PROFILE, cores_busy=1.5, gil_share=0.7, sensitivity=0.2, pressure=0.1, iteration_s=0.31)
    beside = replace(PROFILE, residue_bytes=1)
    assert beside.refining(alone) == replace(alone, residue_bytes=1)
    assert alone.refining(beside) == alone and beside.refining(None) == beside
    again = replace(alone, gil_share=None, sensitivity=None, pressure=None, iteration_s=0.32)
    assert again.refining(alone) == replace(alone, iteration_s=0.32)


def test_kinds_go_at_the_pace_of_the_profiled_iteration() -> None:
    assert PROFILE.mean_iteration_s == PROFILE.iteration_s
    assert KINDS.mean_iteration_s == pytest.approx(0.15)
    twice = KINDS.at_pace(0.6)
    assert twice.mean_iteration_s == pytest.approx(0.3) and twice.kinds[0].time_s == (0.0, 0.4)
    alone = replace(PROFILE, cores_busy=1.0, iteration_s=0.15)
    assert KINDS.refining(alone).mean_iteration_s == pytest.approx(0.075)


def test_a_run_adds_to_what_it_was_given() -> None:
    third = replace(SMALL, iteration_s=0.2, seen=5, followed_by=(5, 0, 0))
    this_run = replace(LARGE, seen=4, followed_by=(1, 0, 3)), replace(SMALL, iteration_s=9.0, seen=0), third
    large, small, new = replace(KINDS, cores_busy=1.0, kinds=this_run).refining(KINDS).kinds
    assert (large.seen, large.followed_by) == (14, (2, 9, 3))
    assert (small.seen, small.iteration_s) == (30, SMALL.iteration_s)  # did not come: as it was known
    assert new == third


def test_a_new_measurement_keeps_what_only_whole_runs_show() -> None:
    before = replace(KINDS, iterations=40)
    found = replace(PROFILE, cores_busy=1.0, iteration_s=0.6).instead_of(before)
    assert found.iterations == 40 and found.kinds == KINDS.at_pace(0.6).kinds
    assert PROFILE.instead_of(None) == PROFILE and KINDS.instead_of(PROFILE).kinds == KINDS.kinds


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seen": -1}, "a kind's sizes and counts must be numbers"),
        ({"held_bytes": (2 * MIB, "x")}, "a kind's sizes and counts"),
        ({"iteration_s": None}, "a kind's times must be"),
        ({"time_s": (0.2, 0.0)}, "a kind's times go back"),
        ({"time_s": (0.0,)}, "steps do not belong together"),
        ({"followed_by": (0,) * 3}, "a kind is followed by one that is not there"),
        ({"ordinals": (1, 2)}, "steps are not in order"),
        ({"allocations": 1}, "steps are not in order"),
        ({"held_bytes": (1 << 60, 1)}, "sizes and counts"),
        ({"iteration_s": float("inf")}, "a kind's times must be"),
        ({"followed_by": None}, ""),
        ({"ordinals": 3}, ""),
    ],
)
def test_kinds_that_cant_be(changes: dict[str, object], message: str) -> None:
    content = replace(KINDS, kinds=(replace(LARGE, **changes), SMALL)).to_json()
    with pytest.raises(UsageError, match=f"damaged: .*{message}"):
        Profile.from_json(content, "x")


def test_more_kinds_than_the_shim_has() -> None:
    with pytest.raises(UsageError, match="more than 8 kinds"):
        Profile.from_json(replace(KINDS, kinds=(LARGE,) * 9).to_json(), "x")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"residue_bytes": -1}, "sizes must be numbers of bytes"),
        ({"page_bytes": 0}, "sizes must be"),
        ({"page_bytes": 5000}, "page_bytes must be a power of two from 4096 up, but is 5000"),
        ({"page_bytes": 2048}, "power of two from 4096 up"),
        ({"key": 3}, "its key must be a text"),
        ({"held_bytes": ("x", 1, 2)}, "sizes must be"),
        ({"iteration_s": None}, "times must be numbers of seconds"),
        ({"time_s": (0.0, 0.2, 0.1)}, "times of its curve go back"),
        ({"held_bytes": (), "time_s": ()}, "0 sizes and 0 times"),
        ({"time_s": (0.0,)}, "3 sizes and 1 times"),
        ({"cores_busy": -0.5}, "shares must be numbers"),
        ({"gil_share": "all"}, "shares must be numbers"),
        ({"pressure": -1}, "shares must be numbers"),
        ({"spread": (1.0, 0.0)}, "spread must be of numbers above 0"),
        ({"spread": (None,)}, "spread must be of numbers"),
    ],
)
def test_what_no_iteration_can_have_is_damage(changes: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=f"x is damaged: .*{message}"):
        Profile.from_json(replace(PROFILE, **changes).to_json(), "x")


def test_what_can_not_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("[]")
    with pytest.raises(UsageError, match="not a gpushare profile"):
        Profile.load(tmp_path / "list")
    (tmp_path / "bytes").write_bytes(b"\xff\x00")
    with pytest.raises(UsageError, match="damaged"):
        Profile.load(tmp_path / "bytes")
    with pytest.raises(UsageError, match="can't be read: No such file"):
        Profile.load(tmp_path / "none")


@given(st.lists(st.integers(0, 100), max_size=60), st.integers(1, 50))
def test_segments_cover_the_curve_once(held: list[int], split: int) -> None:
    pieces = segments(held, split)
    assert [i for first, end in pieces for i in range(first, end)] == list(range(len(held)))
    for first, end in pieces[:-1]:
        inside = sum(abs(held[i] - held[i - 1]) for i in range(first + 1, end))
        assert inside < split


@pytest.mark.parametrize("field", ["held_bytes", "time_s"])
def test_what_a_file_lacks_is_named(field: str) -> None:
    content = PROFILE.to_json()
    del content["curve"][field]
    with pytest.raises(UsageError, match=f"^x is damaged: it lacks '{field}'$"):
        Profile.from_json(content, "x")


@pytest.mark.parametrize("field", ["iteration_s", "curve", "device"])
def test_what_a_file_lacks_at_its_top_is_named(field: str) -> None:
    content = PROFILE.to_json()
    del content[field]
    with pytest.raises(UsageError, match=f"^x is damaged: it lacks '{field}'$"):
        Profile.from_json(content, "x")


def test_what_no_profile_has_is_named() -> None:
    with pytest.raises(UsageError, match=r"^x is damaged: it also has 'peak'$"):
        Profile.from_json({**PROFILE.to_json(), "peak": 1}, "x")
