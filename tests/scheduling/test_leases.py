from dataclasses import replace

import pytest

from gpushare.native.doors import BY_CURVE, NO_LEASES
from gpushare.scheduling.leases import segment_bytes
from gpushare.scheduling.policies import POLICIES
from gpushare.scheduling.snapshot import TURNS, Permit, Snapshot

NOTHING = Snapshot(1 << 30, ())
IN_ROUNDS = [Permit(1, 2, 0, 0.0, by_forecast=True), Permit(2, 1, 7, 0.5, by_forecast=True)]


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"waterwave"}))
def test_other_policies_hand_memory_over_by_page(name: str) -> None:
    assert segment_bytes(POLICIES[name], NOTHING, IN_ROUNDS) == NO_LEASES
    assert segment_bytes(POLICIES[name], replace(NOTHING, split_bytes=5), IN_ROUNDS) == NO_LEASES


@pytest.mark.parametrize(
    ("policy", "mode"), [("waterwave", None), ("waterwave", "waterwave"), ("auto", "waterwave")]
)
def test_waterwave_hands_it_over_by_segment(policy: str, mode: str | None) -> None:
    snapshot = replace(NOTHING, mode=mode)
    assert segment_bytes(POLICIES[policy], snapshot, IN_ROUNDS) == BY_CURVE
    assert segment_bytes(POLICIES[policy], replace(snapshot, split_bytes=5), IN_ROUNDS) == 5


@pytest.mark.parametrize("mode", [TURNS, "zico"])
def test_what_counts_is_the_mode_in_force(mode: str) -> None:
    assert segment_bytes(POLICIES["waterwave"], replace(NOTHING, mode=mode), IN_ROUNDS) == NO_LEASES


@pytest.mark.parametrize("made", [0, None])
def test_nothing_is_promised_where_starts_are_as_early_as_they_fit(made: int | None) -> None:
    permits = [Permit(a, b, made, 0.5, by_forecast=True) for a, b in ((1, 2), (2, 1))]
    assert segment_bytes(POLICIES["waterwave"], NOTHING, permits) == NO_LEASES
