"""Kinds of iterations in a profile that is taken, and given."""

import pytest

from gpushare.framework import profiles
from gpushare.framework.companions import Felt
from gpushare.framework.profiles import Times
from gpushare.framework.shares import Shares
from gpushare.native.doors import NativeCurve, NativeKind


def kind(duration_ns: int, seen: int) -> NativeKind:
    return NativeKind([0, 5], [100, 50], [0, duration_ns // 2], 10, 0, duration_ns, seen, [seen, 0, 0, 0])


def test_times_are_those_of_the_job_alone() -> None:
    """Beside another job the first kind took 2 s where it takes 1 s alone; the third did not come at all."""
    found = profiles._kinds([kind(2 * 10**9, 7), kind(10**9, 3), kind(4 * 10**8, 0)], 1.0)
    assert [k["iteration_s"] for k in found] == pytest.approx([1.0, 0.5, 0.4])
    assert found[1]["time_s"] == pytest.approx([0.0, 0.25])
    assert [k["seen"] for k in found] == [7, 3, 0] and found[0]["followed_by"] == [7, 0, 0]


def test_one_kind_is_the_curve_itself() -> None:
    assert profiles._kinds([kind(10**9, 7)], 1.0) == []


def test_few_of_many_are_believed() -> None:
    assert profiles._believed([2000, 10]) == [16, 1]
    assert profiles._believed([3, 1, 0]) == [3, 1, 0] and profiles._believed([]) == []


def curve(times_ms: list[int], duration_ms: int) -> NativeCurve:
    times_ns = [t * 10**6 for t in times_ms]
    return NativeCurve(
        [7] * len(times_ns), times_ns, version=3, residue_bytes=1, duration_ns=duration_ms * 10**6
    )


def test_times_are_of_before_the_companions_came(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Times(curve([0, 50], 100), [kind(10**9, 9), kind(10**9, 1)])
    now = curve([0, 80], 170), [kind(2 * 10**9, 30), kind(2 * 10**9, 3)]
    monkeypatch.setattr(profiles, "_before", None)
    assert profiles._times(*now) == Times(*now)
    monkeypatch.setattr(profiles, "_before", before)
    assert profiles._times(*now) == before
    longer = curve([0, 80, 90], 170)
    assert profiles._times(longer, now[1][:1]) == Times(longer, now[1][:1]), "they have become others"


def test_an_iteration_alone_scales_the_curve_down_but_never_up() -> None:
    assert profiles._solo_ns(Shares(0.1, 1.0, ()), Felt(alone_s=0.09)) == 90 * 10**6
    assert profiles._solo_ns(Shares(0.1, 1.0, ()), Felt()) == 100 * 10**6
    found = profiles._solo_times(curve([0, 50], 100), 90 * 10**6, alone=True)
    assert found == (pytest.approx([0.0, 0.045]), pytest.approx(0.09))
    found = profiles._solo_times(curve([0, 50], 100), 120 * 10**6, alone=True)
    assert found == (pytest.approx([0.0, 0.05]), pytest.approx(0.12)), "work after the last allocation"
    disturbed = profiles._solo_times(curve([0, 50], 100), 150 * 10**6, alone=False)
    assert disturbed[1] == pytest.approx(0.1)


def test_an_iteration_is_as_long_as_its_kind() -> None:
    """One of another kind makes an allocation more, and takes ten times as long: the curve covers both."""
    both = [kind(10**8, 57), kind(10**9, 3)]
    assert profiles._of_first_kind(Times(curve([0, 50, 940], 100), both), None) == 10**8
    not_here = [kind(10**8, 0), kind(10**9, 3)]
    assert profiles._of_first_kind(Times(curve([0, 50, 940], 100), not_here), None) == 94 * 10**7
    beside = [kind(10**8, 3), kind(4 * 10**8, 57)]
    of_both = Times(curve([0, 50], 100), beside)
    assert profiles._of_first_kind(of_both, 10**8) == 25 * 10**6, "four times as long as alone"
    assert profiles._of_first_kind(of_both, 10**9) == 10**8, "it was one of another kind"


def test_iterations_are_alike_if_nearly_all_are_of_one_kind() -> None:
    rare, half = [kind(1, 9), kind(1, 1)], [kind(1, 5), kind(1, 5)]
    assert Times(curve([0], 1), []).alike and Times(curve([0], 1), rare).alike
    assert not Times(curve([0], 1), half).alike
