from dataclasses import replace

import pytest

from gpushare.native.doors import BY_CURVE, NO_LEASES
from gpushare.scheduling.leases import segment_bytes
from gpushare.scheduling.policies import POLICIES
from gpushare.scheduling.snapshot import TURNS, Snapshot

NOTHING = Snapshot(1 << 30, ())


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"waterwave"}))
def test_other_policies_hand_memory_over_by_page(name: str) -> None:
    assert segment_bytes(POLICIES[name], NOTHING) == NO_LEASES
    assert segment_bytes(POLICIES[name], replace(NOTHING, split_bytes=5)) == NO_LEASES


@pytest.mark.parametrize(
    ("policy", "mode"), [("waterwave", None), ("waterwave", "waterwave"), ("auto", "waterwave")]
)
def test_waterwave_hands_it_over_by_segment(policy: str, mode: str | None) -> None:
    snapshot = replace(NOTHING, mode=mode)
    assert segment_bytes(POLICIES[policy], snapshot) == BY_CURVE
    assert segment_bytes(POLICIES[policy], replace(snapshot, split_bytes=5)) == 5


@pytest.mark.parametrize("mode", [TURNS, "zico"])
def test_what_counts_is_the_mode_in_force(mode: str) -> None:
    assert segment_bytes(POLICIES["waterwave"], replace(NOTHING, mode=mode)) == NO_LEASES
