"""How many jobs are there at once: what curves say, and when it is kept."""

from collections.abc import Callable, Collection, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare.jobs import FAIR, ORDERS
from gpushare.scheduling.efficiency import efficiency, serial_share, slowed_down
from gpushare.scheduling.fewer import FewerSearch, Forecast, Found, Resident, best_number, residents
from gpushare.scheduling.meter import Reading
from gpushare.scheduling.pace import Pace
from gpushare.scheduling.policies import MODES, POLICIES, may_set_aside
from gpushare.scheduling.progress import Progress
from gpushare.scheduling.snapshot import FEWER, GROUPS, TURNS, IterationCurve, JobState
from gpushare.scheduling.trials import TRIALS_SHARE

MIB = 1 << 20


def forecast(by_number: Mapping[int, float]) -> Forecast:
    return lambda accounts, modes=None: {"zico": by_number.get(len(accounts), 1.0), TURNS: 1.0}


def reading(worth: float) -> Reading:
    return Reading(worth, 0.0, True, worth, {}, {})


def test_the_number_is_that_with_the_most_work_done_for_all() -> None:
    found = best_number(range(1, 9), forecast({2: 2.0, 3: 2.9, 4: 3.3, 5: 2.4, 6: 1.4}))
    assert found == Found(4, pytest.approx(efficiency([3.3 / 4] * 4 + [0.0] * 4)))


def test_of_numbers_that_do_about_as_much_the_largest_is_best() -> None:
    found = best_number(range(1, 9), forecast(dict.fromkeys(range(2, 7), 2.0)))
    assert found and found.at_once == 6


def test_it_is_told_of_who_goes_first_alone() -> None:
    seen: list[tuple[int, ...]] = []

    def look(accounts: Collection[int], modes: Sequence[str] | None = None) -> dict[str, float]:
        seen.append(tuple(accounts))
        return {"zico": 1.0}

    best_number([7, 3, 5, 1], look)
    assert seen == [(7, 3, 5), (7, 3)]


@given(st.integers(0, 62))
def test_few_numbers_are_looked_at_however_many_jobs_there_are(jobs: int) -> None:
    seen: list[int] = []

    def look(accounts: Collection[int], modes: Sequence[str] | None = None) -> dict[str, float]:
        seen.append(len(accounts))
        return {"zico": 1.5}

    found = best_number(range(jobs), look)
    assert (found is None) == (jobs < 3)
    assert len(seen) <= 8 and all(2 <= n < jobs for n in seen)


def test_who_goes_first_is_by_rank_and_then_by_who_came_first() -> None:
    curve = IterationCurve((0,), (10,), (0.0,), 1.0, 4, 1)
    jobs = [*(JobState(account, curve) for account in (1, 2, 3)), JobState(4, None)]
    found = residents(jobs, {1: 5, 3: -1})
    assert found == [Resident(1, 4, 5), Resident(2, 4), Resident(3, 4, -1)]
    search = FewerSearch()
    search.see(found, forecast({2: 2.0}))
    search.believed(None, 0.0)
    search.take(0.0)
    assert search.aside == {1}
    assert not search.turn_is_over(59.0) and search.turn_is_over(61.0)
    search.see(found, forecast({2: 2.0}))
    search.believed(None, 0.0)
    search.take(61.0)
    assert search.aside == {1}  # of a higher rank, so it does not take turns with them


@pytest.mark.parametrize("order", ORDERS)
def test_jobs_are_set_aside_under_auto_but_not_where_each_has_its_fair_share(order: str) -> None:
    may = [name for name in POLICIES if may_set_aside(MODES.get(name, ()), order)]
    assert may == ([] if order == FAIR else ["auto"])


def search_for(by_number: Mapping[int, float], jobs: int = 8, residue_bytes: int = MIB) -> FewerSearch:
    search = FewerSearch()
    search.see([Resident(account, residue_bytes) for account in range(1, jobs + 1)], forecast(by_number))
    return search


def of_curves(by_number: Mapping[int, float]) -> float:
    found = best_number(range(1, 9), forecast(by_number))
    assert found
    return found.efficiency


def test_what_is_believed_is_as_wrong_as_curves_were() -> None:
    curves = {4: 3.3}
    search = search_for(curves)
    believed = search.believed(None, 0.0)
    assert believed == pytest.approx(of_curves(curves) / 1.15 / 1.1)  # the price, and that it is not measured
    search.take(0.0)
    assert search.aside == {5, 6, 7, 8} and search.at_once == 4
    assert search.worth(reading(1.1)) == pytest.approx(1.1 / 1.15)
    assert search.believed(None, 0.0) == pytest.approx(1.1 / 1.15)
    search.restart(range(8, 20))
    assert search.believed(None, 0.0) == pytest.approx(1.1 / 1.15) and search.at_once == 4
    search.restart(range(9, 20))  # none of those that it was learned of
    assert search.believed(None, 0.0) == believed and search.at_once is None
    assert search_for({4: 3.3, 8: 2.9}).believed(None, 0.0) is None  # all at once is as good


def test_what_all_lose_by_contention_limits_fewer_of_them_until_these_are_measured() -> None:
    curves = {8: 2.0, 4: 3.6}
    search = search_for(curves)
    assert search.believed("zico", 1.5) == pytest.approx(
        slowed_down(of_curves(curves), serial_share(2.0, 1.5)) / 1.15 / 1.1
    )
    for measured in (1.95, 2.0, 2.4):  # what noise may be is not put down to it
        assert search.believed("zico", measured) == pytest.approx(of_curves(curves) / 1.15 / 1.1)
    search.take(0.0)
    search.worth(reading(2.5))
    assert search.believed("zico", 1.5) == pytest.approx(2.5 / 1.15)


def test_all_come_to_be_there() -> None:
    jobs = [Resident(account, MIB) for account in range(1, 6)]
    search = FewerSearch()
    away, now_s = [], 0.0
    for _ in range(5):
        search.see(jobs, forecast({2: 2.0, 3: 3.0}))
        search.believed(None, 0.0)
        search.take(now_s)
        away.append(set(search.aside))
        now_s += 61
        assert search.turn_is_over(now_s)
    assert away == [{4, 5}, {2, 3}, {1, 5}, {3, 4}, {1, 2}]


def test_newcomers_do_not_put_off_the_turn_of_those_that_wait() -> None:
    search = FewerSearch()
    for number, now_s in ((5, 0.0), (6, 50.0)):
        jobs = [Resident(account, MIB) for account in range(1, number + 1)]
        search.restart(range(1, number + 1))
        search.see(jobs, forecast({2: 2.0, 3: 3.0}))
        search.believed(None, 0.0)
        search.take(now_s)
    assert search.aside == {4, 5, 6} and search.turn_is_over(61.0)


def test_what_is_lost_at_the_end_of_each_turn_counts() -> None:
    search = search_for({4: 3.3})
    search.believed(None, 0.0)
    search.take(100.0)
    assert not search.is_settled(115.0, range(5, 9), False)
    assert search.is_settled(125.0, range(5, 9), True)  # somebody else was measured meanwhile
    assert search.worth(reading(2.2)) == pytest.approx(2.2 * 0.75 / 1.15)


def test_a_turn_is_longer_where_copying_is() -> None:
    search = search_for({4: 3.3}, residue_bytes=1 << 30)
    search.believed(None, 0.0)
    search.take(0.0)
    assert not search.turn_is_over(150) and search.turn_is_over(200)


def test_large_jobs_must_have_run_for_a_while_to_be_copied_out() -> None:
    search = search_for({4: 3.3}, residue_bytes=4 << 30)
    search.believed(None, 0.0)
    assert not search.is_worth_copying(600)
    assert search.is_worth_copying(700)  # 32 GiB both ways, at 1 GB/s, are a twentieth of it


def test_it_is_not_measured_before_they_have_left() -> None:
    search = search_for({4: 3.3})
    search.believed(None, 0.0)
    search.take(10.0)
    assert not search.is_settled(11.0, (), True)
    assert not search.is_settled(12.0, (6, 7, 8), True)
    assert not search.is_settled(12.5, range(4, 9), True)  # one is still to come back
    assert not search.is_settled(12.5, range(5, 9), False)
    assert search.is_settled(13.0, range(5, 9), True)
    assert search.is_settled(13.5, (), True)  # they were away: what comes back since does not count
    search.take(20.0)
    assert not search.is_settled(49.0, (), False)
    assert search.is_settled(51.0, (), False)  # some never do


def test_those_that_come_back_are_waited_for_and_no_others() -> None:
    search = search_for({4: 3.3})
    search.believed(None, 0.0)
    search.take(0.0)
    assert search.is_settled(1.0, range(5, 9), True)
    search.leave(60.0)
    assert not search.aside
    assert not search.is_settled(60.5, {1, 7}, True)
    assert search.is_settled(61.0, {1, 2}, True)  # copied out for want of memory
    assert search.is_settled(61.5, {7}, True)
    search.take(70.0)
    search.leave(71.0)  # before they had left
    assert not search.is_settled(100.0, {7}, True) and search.is_settled(101.0, {7}, True)


class ShortOfMemory:
    """Equal jobs: of the most that are there at once `overlap` run side by side, of more than these only one."""

    def __init__(self, jobs: int, overlap: float, *, most: int = 4, believed: float | None = None) -> None:
        self.pace, self.now_s, self.phase = Pace(), 0.0, (0,)
        self.overlap, self.most = overlap, most
        self.believed = believed or overlap
        self.done = dict.fromkeys(range(1, jobs + 1), 1e-6)
        self.spent_s: dict[str, float] = {}
        self.away: set[int] = set()
        self.idle = False
        self.left: list[frozenset[int]] = []

    def _forecast(self, accounts: Collection[int], modes: Sequence[str] | None = None) -> dict[str, float]:
        together = 1.0 if len(accounts) > self.most else min(self.believed, len(accounts))
        return {"zico": together, TURNS: 1.0}

    def _together(self, here: int, mode: str | None) -> float:
        return 1.0 if here > self.most or mode == TURNS else min(self.overlap, here)

    def run(self, seconds: float) -> None:
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            jobs = {a: Progress(done, 0.05, self.phase, a in self.away) for a, done in self.done.items()}
            first = [Resident(account, MIB) for account in self.done]
            mode = self.pace.look(self.now_s, jobs, self._forecast, residents=first, copied_out=self.away)
            if self.pace.aside != self.away:
                self.left.append(self.pace.aside)
            self.away = set(self.pace.aside)
            passed_s = self.pace.look_again_s
            self.now_s += passed_s
            here = [account for account in self.done if account not in self.away]
            together = self._together(len(here), mode)
            for account in here:
                self.done[account] += 0.0 if self.idle else together / len(here) * passed_s / 0.05
            if mode:
                self.spent_s[mode] = self.spent_s.get(mode, 0.0) + passed_s


def test_where_fewer_do_more_the_last_ones_are_set_aside() -> None:
    jobs = ShortOfMemory(8, 2.0)
    jobs.run(60)
    assert jobs.pace.mode == FEWER and jobs.pace.aside == {5, 6, 7, 8} and jobs.pace.at_once == 4
    assert jobs.spent_s[FEWER] > 55 and len(jobs.left) == 1
    least_before = min(jobs.done.values())
    jobs.run(60)
    assert jobs.pace.aside == {1, 2, 3, 4} and len(jobs.left) == 2 and jobs.pace.settled
    assert min(jobs.done.values()) > 100 * max(least_before, 1)
    assert jobs.pace.settled and jobs.pace.yields.modes[FEWER].measured == pytest.approx(2.0, rel=0.05)


def test_the_next_ones_come_in_as_jobs_end_and_nobody_leaves_again() -> None:
    jobs = ShortOfMemory(8, 2.0)
    jobs.run(20)
    for ended in range(1, 8):
        del jobs.done[ended]
        jobs.run(5)
    # Of five three stay: two are better left for later than one, which would run alone.
    assert jobs.left == [frozenset({5, 6, 7, 8}), frozenset({6, 7, 8}), frozenset({7, 8}), frozenset()]
    assert jobs.pace.at_once == 4  # as many would be begun


def test_what_gains_nothing_is_given_up_and_not_believed_again() -> None:
    jobs = ShortOfMemory(8, 0.9, believed=3.0)
    jobs.run(60)
    assert jobs.pace.mode == TURNS and jobs.pace.at_once is None
    assert jobs.spent_s[FEWER] < 5 and jobs.pace.yields.lost_s > 0
    del jobs.done[1]
    jobs.run(60)
    assert jobs.spent_s[FEWER] < 5 and len(jobs.left) == 2


def test_a_gain_that_is_not_worth_the_wait_is_none() -> None:
    jobs = ShortOfMemory(8, 1.06, believed=3.0)
    jobs.run(60)
    assert jobs.pace.mode == TURNS and jobs.spent_s[FEWER] < 5


def test_where_all_overlap_nobody_is_set_aside() -> None:
    jobs = ShortOfMemory(8, 2.0, most=8)
    jobs.run(60)
    assert jobs.pace.mode == "zico" and not jobs.left


def test_those_set_aside_come_back_where_the_others_stand_still() -> None:
    jobs = ShortOfMemory(8, 2.0)
    jobs.run(20)
    assert jobs.pace.mode == FEWER
    jobs.idle = True
    jobs.run(5)
    assert jobs.pace.mode == TURNS and not jobs.pace.aside


def test_turns_go_on_in_another_phase() -> None:
    jobs = ShortOfMemory(8, 2.0)
    jobs.run(20)
    for phase in range(1, 10):
        jobs.phase = (phase,)
        jobs.run(40)
    assert jobs.pace.mode == FEWER and len(jobs.left) >= 5
    assert min(jobs.done.values()) > max(jobs.done.values()) / 2


def test_fewer_that_come_to_do_less_are_left() -> None:
    jobs = ShortOfMemory(8, 2.0)
    jobs.run(20)
    assert jobs.pace.mode == FEWER
    jobs.overlap = 0.4
    jobs.run(30)
    assert jobs.pace.mode != FEWER and not jobs.pace.aside  # the rest are as good as each other


def test_another_phase_is_looked_at_anew() -> None:
    jobs = ShortOfMemory(8, 2.0)
    jobs.run(20)
    jobs.phase, jobs.overlap = (1,), 0.7  # what they do now no longer goes side by side
    jobs.run(30)
    assert jobs.pace.mode == TURNS and not jobs.pace.aside


def test_groups_are_not_looked_for_among_jobs_that_stand_still() -> None:
    jobs = ShortOfMemory(8, 2.0)
    jobs.run(60)
    assert GROUPS not in jobs.spent_s and not jobs.pace.groups


class Contended(ShortOfMemory):
    """Jobs that contend: `rate` says what so many do together, and `curves` what would be forecast of that."""

    def __init__(self, jobs: int, curves: Mapping[int, float], rate: Callable[[int, float], float]) -> None:
        super().__init__(jobs, 1.0)
        self.curves, self.rate = curves, rate

    def _forecast(self, accounts: Collection[int], modes: Sequence[str] | None = None) -> dict[str, float]:
        return {"zico": self.curves.get(len(accounts), 1.0), TURNS: 1.0}

    def _together(self, here: int, mode: str | None) -> float:
        return 1.0 if mode == TURNS else self.rate(here, self.now_s)


TWENTY = {20: 5.5, 17: 5.9, 14: 6.65, 11: 5.5}  # as curves had it of twenty small networks on two cores


def test_nobody_is_set_aside_where_it_is_not_memory_that_is_short() -> None:
    jobs = Contended(20, TWENTY, lambda here, now_s: 2.75 if now_s < 4 else 3.3)
    jobs.run(300)
    assert jobs.pace.mode == "zico" and not jobs.left


def test_a_slow_first_window_sets_nobody_aside() -> None:
    jobs = Contended(20, {20: 2.8, 14: 3.5}, lambda here, now_s: 1.4 if now_s < 3 else 2.8)
    jobs.run(300)
    assert not jobs.left


def test_sharing_that_has_become_better_meanwhile_is_gone_back_to() -> None:
    """Eight share badly at first; once some are set aside nothing but measuring them anew would show otherwise."""
    jobs = Contended(
        8, {8: 1.5, 4: 3.3}, lambda here, now_s: 2.0 if here <= 4 else 1.5 if now_s < 30 else 2.4
    )
    jobs.run(30)
    assert jobs.pace.mode == FEWER and jobs.pace.at_once == 4
    jobs.run(120)  # two looks: it may be the machine that has become faster
    assert jobs.pace.mode == "zico" and jobs.pace.at_once is None and jobs.pace.settled
    account = jobs.pace.yields
    assert account.modes["zico"].measured == pytest.approx(2.4, rel=0.05)


def looked_at_anew() -> Contended:
    """Sharing is in doubt at each end of a turn, and it never becomes better."""
    jobs = Contended(8, {8: 1.5, 7: 1.5, 4: 3.3}, lambda here, now_s: 2.0 if here <= 4 else 1.5)
    jobs.run(30)
    assert jobs.pace.mode == FEWER
    return jobs


def test_sharing_that_is_still_worse_costs_a_window_and_others_have_their_turn() -> None:
    jobs = looked_at_anew()
    jobs.run(600)
    looks = jobs.left.count(frozenset())
    assert looks >= 3 and jobs.spent_s[FEWER] > 0.85 * jobs.now_s
    assert {5, 6, 7, 8} in jobs.left and {1, 2, 3, 4} in jobs.left
    assert jobs.pace.yields.lost_s <= TRIALS_SHARE * jobs.now_s + 0.5
    assert min(jobs.done.values()) > 0.75 * max(jobs.done.values())


def in_a_look_anew() -> Contended:
    jobs = looked_at_anew()
    while jobs.pace.mode == FEWER:
        jobs.run(0.1)
        assert jobs.now_s < 300
    jobs.run(0.5)
    assert jobs.pace.mode == "zico" and not jobs.pace.settled
    return jobs


def test_a_job_that_ends_while_sharing_is_looked_at_anew_brings_nobody_back() -> None:
    jobs = in_a_look_anew()
    lost_s = jobs.pace.yields.lost_s
    del jobs.done[1]
    jobs.run(0.1)
    assert jobs.pace.mode == FEWER and jobs.pace.yields.lost_s > lost_s


def test_another_phase_while_sharing_is_looked_at_anew_brings_nobody_back() -> None:
    jobs = in_a_look_anew()
    jobs.phase = (1,)
    jobs.run(0.1)
    assert jobs.pace.mode == FEWER


def test_fewer_are_kept_among_other_jobs_only_if_that_is_better_than_all_of_them() -> None:
    jobs = looked_at_anew()
    jobs.curves = {7: 2.5, 4: 3.3}  # the one that ends next is in everybody's way
    del jobs.done[1]
    jobs.run(0.1)
    assert jobs.pace.mode == FEWER  # of all at once no more is believed than what was measured of eight
    jobs.curves = {5: 1.45, 4: 1.95}
    for ended in (2, 3):
        del jobs.done[ended]
    jobs.run(0.1)
    assert not jobs.pace.aside


def share_badly() -> Contended:
    """Eight, of which four do twice as much."""
    jobs = Contended(8, {8: 1.0, 4: 3.3}, lambda here, now_s: 2.0 if here <= 4 else 1.0)
    jobs.run(100)
    assert jobs.pace.mode == FEWER
    return jobs


@pytest.mark.parametrize("seconds", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("speed", [0.0, 0.3])
def test_fewer_are_kept_or_come_again_after_a_slow_moment_of_the_machine(
    speed: float, seconds: float
) -> None:
    jobs = share_badly()
    usual = jobs.rate
    jobs.rate = lambda here, now_s: speed * usual(here, now_s)
    jobs.run(seconds)
    jobs.rate = usual
    jobs.run(60)
    jobs.spent_s.clear()
    jobs.run(300)
    assert jobs.spent_s[FEWER] > 0.95 * 300


def test_a_slow_first_window_of_fewer_does_not_decide() -> None:
    jobs = Contended(
        8, {8: 1.0, 4: 3.3}, lambda here, now_s: (0.6 if now_s < 4 else 2.0) if here <= 4 else 1.0
    )
    jobs.run(60)
    assert jobs.spent_s[FEWER] > 50


def test_a_stall_while_sharing_is_tried_says_nothing() -> None:
    jobs = in_a_look_anew()
    jobs.rate = lambda here, now_s: 0.0
    jobs.run(0.8)
    jobs.rate = lambda here, now_s: 2.0 if here <= 4 else 2.6
    jobs.run(400)
    assert jobs.pace.mode == "zico"


def test_no_more_are_begun_at_once_where_others_share_better() -> None:
    jobs = looked_at_anew()
    del jobs.done[1]
    jobs.curves, jobs.rate = {7: 3.4, 4: 3.3}, lambda here, now_s: 2.0 if here <= 4 else 3.4
    jobs.run(60)
    assert jobs.pace.mode == "zico" and jobs.pace.at_once is None


def test_who_waits_is_found_anew_after_a_turn_whoever_asks() -> None:
    search = search_for({4: 3.3})
    search.believed(None, 0.0)
    search.take(0.0)
    assert search.turn_is_over(61.0)
    search.leave(61.0)
    search.take(100.0)
    assert search.aside == {1, 2, 3, 4}
