"""Whether iterations fit together, by the shim's forecast: against counting second by second."""

from hypothesis import given
from hypothesis import strategies as st

from gpushare.native.simulation import GovernorCurve, fits_together

SECOND = 10**9
blocks = st.lists(st.integers(0, 9), min_size=1, max_size=6)


def curve(held: list[int], residue: int) -> GovernorCurve:
    return GovernorCurve(held, [i * SECOND for i in range(len(held))], residue, 0)


# The last allocation is the end of a curve: what is held there holds for no time.
def held_at(held: list[int], residue: int, second: int) -> int:
    return held[second] if second < len(held) - 1 else residue


iterations = st.tuples(blocks, st.integers(0, 3))


@given(
    newcomer=iterations,
    running=st.lists(st.tuples(iterations, st.integers(0, 5)), max_size=3),
    room=st.integers(0, 30),
)
def test_it_is_counting(
    newcomer: tuple[list[int], int], running: list[tuple[tuple[list[int], int], int]], room: int
) -> None:
    under_way = [(held, residue, min(at, len(held) - 1)) for (held, residue), at in running]
    fits = fits_together(curve(*newcomer), [(curve(h, r), at + 1) for h, r, at in under_way], room)
    held, residue = newcomer
    sums = [
        held_at(held, residue, second) + sum(held_at(h, r, at + second) for h, r, at in under_way)
        for second in range(len(held) - 1)
    ]
    # The first moment counts in any case, as what is held right then.
    now = held[0] + sum(held_at(h, r, at) for h, r, at in under_way)
    assert fits == (max([now, *sums]) <= room)


def test_long_curves_are_cut_but_never_below_what_they_hold() -> None:
    held = [min(i, 2000 - i) // 7 for i in range(2000)]
    long = GovernorCurve(held, [i * 1000 for i in range(2000)], 0, 0)
    peak = max(held)
    assert fits_together(long, [], peak)
    assert not fits_together(long, [], peak - 1)
    # Two triangles half an iteration apart need one peak and the steps of the cuts; at once they need two.
    assert fits_together(long, [(long, 1001)], peak + peak // 20)
    assert not fits_together(long, [(long, 1001)], peak - 1)
    assert not fits_together(long, [(long, 0)], 2 * peak - 1)
