"""Jobs of simple shapes, whose best schedules can be told by hand."""

from gpushare.profiles import Profile
from gpushare.simulation import SimulatedJob

PAGE = 2 << 20
PEAK = 1000  # pages
HEADROOM = 2  # pages that the governor sets aside


def triangle(
    name: str, *, peak: int = PEAK, up: int = 40, down: int = 40, iterations: int = 30, **rest: object
) -> SimulatedJob:
    """Held pages rise to `peak` in `up` steps and fall to nothing in `down`; an iteration takes a second."""
    held = [round(peak * (i + 1) / up) for i in range(up)]
    held += [round(peak * (down - i - 1) / down) for i in range(down)]
    steps = up + down
    return SimulatedJob(
        name=name,
        held_bytes=tuple(h * PAGE for h in held),
        time_s=tuple(i / steps for i in range(steps)),
        iteration_s=1.0,
        residue_bytes=0,
        iterations=iterations,
        **rest,
    )


def budget(peaks: float, peak: int = PEAK) -> int:
    """Bytes of so many peaks, and the headroom."""
    return (round(peaks * peak) + HEADROOM) * PAGE


def profile_of(name: str) -> Profile:
    """The profile of a triangle with many allocations."""
    shape = triangle(name, up=300, down=300)
    return Profile(
        command=f"{name}.py",
        torch="2.13.0",
        device="cpu",
        page_bytes=PAGE,
        persistent_bytes=0,
        activation_bytes=PEAK * PAGE,
        temporary_bytes=0,
        peak_held_bytes=PEAK * PAGE,
        peak_live_bytes=PEAK * PAGE,
        residue_bytes=0,
        iteration_s=1.0,
        held_bytes=shape.held_bytes,
        time_s=shape.time_s,
    )
