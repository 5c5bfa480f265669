"""Ranks of the orders."""

from gpushare.scheduling.order import FAIR, FIFO, PRIORITY, SRTF, Claimant, rank_in_queue, ranks


def claimant(
    account: int, *, priority: int = 0, total: int | None = None, done: float = 0, solo_s: float | None = 1.0
) -> Claimant:
    return Claimant(account, priority, total, done, solo_s)


def first_to_last(order: str, *claimants: Claimant) -> list[int]:
    found = ranks(order, claimants)
    return sorted(found, key=lambda account: found[account])


def test_the_highest_priority_goes_first() -> None:
    assert first_to_last(PRIORITY, claimant(1), claimant(2, priority=7), claimant(3, priority=-1)) == [
        2,
        1,
        3,
    ]


def test_the_shortest_remaining_time_goes_first_and_the_unknown_last() -> None:
    found = first_to_last(
        SRTF,
        claimant(1, total=None),
        claimant(2, total=100, done=10),
        claimant(3, total=100, done=95.5),
        claimant(4, total=1000, solo_s=0.001),
        claimant(5, total=3, solo_s=None),
    )
    assert found == [4, 3, 2, 1, 5]


def test_of_a_job_past_its_last_count_nobody_knows_how_much_it_does() -> None:
    assert claimant(1, total=10, done=10.5).remaining_s == 0
    assert claimant(1, total=10, done=14).remaining_s is None
    assert first_to_last(SRTF, claimant(1, total=10, done=14), claimant(2, total=100, done=1)) == [2, 1]


def test_the_others_are_the_shims_own() -> None:
    assert ranks(FIFO, [claimant(1)]) == ranks(FAIR, [claimant(1)]) == {}


def test_in_the_queue_they_stand_as_at_their_doors() -> None:
    whole_s = [3.0, None, 0.5]
    assert sorted(whole_s, key=lambda s: rank_in_queue(SRTF, 0, s)) == [0.5, 3.0, None]
    assert rank_in_queue(PRIORITY, 2, 0.5) < rank_in_queue(PRIORITY, 1, 0.1)
    assert {rank_in_queue(order, 2, 0.5) for order in (FIFO, FAIR)} == {0}
