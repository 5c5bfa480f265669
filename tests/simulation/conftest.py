"""A profile of a triangle."""

import pytest
from shapes import PAGE, PEAK, triangle

from gpushare.profiles import Profile


def profile_of(name: str, *, peak: int = PEAK, iteration_s: float = 1.0) -> Profile:
    shape = triangle(name, peak=peak, up=300, down=300)
    peak_bytes = max(shape.held_bytes)
    return Profile(
        command=f"{name}.py",
        torch="2.13.0",
        device="cpu",
        page_bytes=PAGE,
        persistent_bytes=0,
        activation_bytes=peak_bytes,
        temporary_bytes=0,
        peak_held_bytes=peak_bytes,
        peak_live_bytes=peak_bytes,
        residue_bytes=0,
        iteration_s=iteration_s,
        held_bytes=shape.held_bytes,
        time_s=tuple(t * iteration_s for t in shape.time_s),
    )


@pytest.fixture
def example_profile() -> Profile:
    return profile_of("example")
