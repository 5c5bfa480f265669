"""Jobs of simple shapes, whose best schedules can be told by hand."""

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
        **rest,  # type: ignore[arg-type]
    )


def budget(peaks: float, peak: int = PEAK) -> int:
    """Bytes of so many peaks, and the headroom."""
    return (round(peaks * peak) + HEADROOM) * PAGE
