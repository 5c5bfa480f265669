"""Modes for jobs whose true yields are known: what is chosen, when, and what finding out may cost."""

import itertools
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpushare.scheduling.efficiency import doubt, efficiency
from gpushare.scheduling.meter import Meter, Progress, SoloTimes, phase
from gpushare.scheduling.pace import Pace
from gpushare.scheduling.snapshot import GROUPS, TURNS
from gpushare.scheduling.trials import ALLOWED_LATE_S, CLOSE_LOOK_S, LOOK_S, TRIALS_SHARE


class Jobs:
    """Jobs with another yield in each mode. `forecast` is what curves would say.

    All have the same part in it, or, in a mode of `parts`, the first job that one and the rest what is left. The
    machine does `speed` times as much per second.
    """

    def __init__(
        self, solo_s: list[float], forecast: Mapping[str, float] | None = None, **yields: float
    ) -> None:
        self.pace = Pace()
        self.solo_s = dict(enumerate(solo_s, 1))
        self.yields = {TURNS: 1.0, **yields}
        self.forecast = {**self.yields, TURNS: 1.0} if forecast is None else {**forecast, TURNS: 1.0}
        self.parts: dict[str, float] = {}
        self.phase: tuple[int, ...] = ()
        self.now_s = 0.0
        self.late_s: Iterator[float] = itertools.repeat(0.0)  # each look
        self.speed = 1.0
        self.done = dict.fromkeys(self.solo_s, 1e-6)  # they have begun
        self.spent_s: dict[str, float] = {}
        self.on_trial_s = self.lost_on_trial_s = self.shared_s = 0.0
        self.switches = 0
        self.home: str | None = None

    def run(self, seconds: float) -> None:
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            self.step()

    def step(self) -> None:
        jobs = {a: Progress(self.done[a], s, self.phase) for a, s in self.solo_s.items()}
        before = self.pace.mode
        mode = self.pace.look(self.now_s, jobs, lambda _: self.forecast)
        self.switches += before != mode
        passed_s = self.pace.look_again_s + next(self.late_s)
        self.now_s += passed_s
        rate = 1.0 if mode is None else self.yields[mode]
        first = self.parts.get(mode or "", 1 / len(self.solo_s))
        for account, solo_s in self.solo_s.items():
            part = first if account == 1 else (1 - first) / max(1, len(self.solo_s) - 1)
            self.done[account] += self.speed * rate * passed_s * part / solo_s
        if mode is None:
            return
        self.spent_s[mode] = self.spent_s.get(mode, 0.0) + passed_s
        self.shared_s += passed_s
        if not self.pace.on_trial:
            self.home = mode
        else:
            assert self.home is not None
            self.on_trial_s += passed_s
            self.lost_on_trial_s += max(0.0, 1 - rate / self.yields[self.home]) * passed_s

    @property
    def work_s(self) -> float:
        return sum(self.done[a] * s for a, s in self.solo_s.items())


class Contending:
    """Jobs of which each takes longer by a part of its solo time for each other one that runs; the same for either
    of a pair, where only one is named."""

    def __init__(
        self,
        jobs: int,
        slowed: Mapping[tuple[int, int], float],
        forecast: float | None = None,
        solo_s: float = 0.05,
    ) -> None:
        self.pace, self.now_s, self.phase, self.solo_s = Pace(), 0.0, (0,), solo_s
        self.slowed = {**{(j, i): f for (i, j), f in slowed.items()}, **slowed}
        self.forecast = forecast
        self.done = dict.fromkeys(range(1, jobs + 1), 1e-6)
        self.spent_s: dict[str, float] = {}
        self.efficiency_s = self.shared_s = 0.0
        self.speed = 1.0
        self.taken: list[str] = []

    def rates(self, mode: str) -> dict[int, float]:
        groups = {TURNS: (frozenset(self.done),), GROUPS: self.pace.groups}.get(mode, ())
        mine = {a: next((g for g in groups if a in g), frozenset({a})) for a in self.done}

        def beside(a: int) -> float:
            return sum(self.slowed.get((a, o), 0.0) / len(mine[o]) for o in self.done if o not in mine[a])

        return {a: 1 / (1 + beside(a)) / len(mine[a]) for a in self.done}

    def run(self, seconds: float) -> None:
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            jobs = {a: Progress(done, self.solo_s, self.phase) for a, done in self.done.items()}
            tried, lost_s = self.pace.on_trial, self.pace.yields.lost_s
            mode = self.pace.look(
                self.now_s, jobs, lambda counted: {"zico": self.forecast or float(len(counted)), TURNS: 1.0}
            )
            assert mode
            if tried and self.pace.yields.lost_s > lost_s:
                assert self.pace.yields.lost_s <= TRIALS_SHARE * self.shared_s + 1e-9
            if self.taken[-1:] != [mode]:
                self.taken.append(mode)
            passed_s, rates = self.pace.look_again_s, self.rates(mode)
            self.now_s += passed_s
            self.shared_s += passed_s
            self.spent_s[mode] = self.spent_s.get(mode, 0.0) + passed_s
            self.efficiency_s += efficiency([*rates.values()]) * passed_s
            for a, rate in rates.items():
                self.done[a] += self.speed * rate * passed_s / self.solo_s


class InGroups(Contending):
    """In groups they come to these rates, whatever was to be expected."""

    def __init__(
        self, jobs: int, slowed: Mapping[tuple[int, int], float], in_groups: dict[int, float]
    ) -> None:
        super().__init__(jobs, slowed)
        self.in_groups = in_groups

    def rates(self, mode: str) -> dict[int, float]:
        return self.in_groups if mode == GROUPS else super().rates(mode)


solo = st.lists(st.floats(0.001, 0.5), min_size=2, max_size=5)
rates = st.floats(0.3, 3.0)


@given(sharing=st.floats(0.3, 0.95), solo_s=solo)
def test_what_loses_together_takes_turns(sharing: float, solo_s: list[float]) -> None:
    jobs = Jobs(solo_s, {"zico": 2.0}, zico=sharing)
    jobs.run(30)
    assert jobs.home == TURNS
    before_s, worked_s = jobs.spent_s[TURNS], jobs.work_s
    jobs.run(1000)
    # Now and then sharing is tried again. Of what is nearly as good trials may be long: they lose less.
    assert jobs.spent_s[TURNS] - before_s > 900
    assert jobs.work_s - worked_s >= (1 - TRIALS_SHARE) * 1000


@given(sharing=st.floats(0.3, 0.8))
def test_short_iterations_that_lose_together_lose_little(sharing: float) -> None:
    jobs = Jobs([0.01, 0.02], {"zico": 2.0, "waterwave": 1.9}, zico=sharing, waterwave=sharing)
    jobs.run(5)
    assert set(jobs.spent_s) == {"zico", TURNS}  # that one loses says enough of the other
    jobs.run(15)
    assert jobs.home == TURNS
    assert jobs.work_s >= 0.98 * 20


@given(sharing=st.floats(1.26, 2.0))
def test_what_gains_much_is_never_put_to_the_test(sharing: float) -> None:
    jobs = Jobs([0.01, 0.3], zico=sharing)
    jobs.run(500)
    assert set(jobs.spent_s) == {"zico"} and set(jobs.pace.yields.modes) == {"zico"}


def test_a_small_gain_is_kept_after_a_trial() -> None:
    jobs = Jobs([0.01, 0.02], zico=1.05)
    jobs.run(1000)
    assert jobs.home == "zico"
    assert 0 < jobs.spent_s[TURNS] < 50


def test_where_nothing_overlaps_the_jobs_take_turns_at_once() -> None:
    jobs = Jobs([0.3, 0.3], {"zico": 1.01, "waterwave": 1.0}, zico=1.0, waterwave=1.0)
    jobs.step()
    assert jobs.pace.mode == TURNS


@given(zico=rates, waterwave=rates, guess=st.tuples(st.floats(1.1, 3), st.floats(1.1, 3)), solo_s=solo)
@settings(max_examples=60, deadline=None)
def test_after_a_while_the_best_mode_is_in_force(
    zico: float, waterwave: float, guess: tuple[float, float], solo_s: list[float]
) -> None:
    jobs = Jobs(solo_s, dict(zip(("zico", "waterwave"), guess, strict=True)), zico=zico, waterwave=waterwave)
    jobs.run(6000)
    jobs.spent_s.clear()
    jobs.run(2000)
    best = max(jobs.yields.values())
    mean = sum(jobs.yields[mode] * s for mode, s in jobs.spent_s.items()) / sum(jobs.spent_s.values())
    assert mean >= 0.96 * best


guesses = st.tuples(st.floats(0.5, 3), st.floats(0.5, 3))
any_solo = st.lists(st.floats(0.001, 4), min_size=2, max_size=4)


def jobs_of(solo_s: list[float], guess: tuple[float, float], rate: list[float]) -> Jobs:
    zico, waterwave, turns = rate
    forecast = dict(zip(("zico", "waterwave"), guess, strict=True))
    jobs = Jobs(solo_s, forecast, zico=zico, waterwave=waterwave)
    jobs.yields[TURNS] = turns
    return jobs


@given(rate=st.lists(rates, min_size=3, max_size=3), guess=guesses, solo_s=any_solo)
@settings(max_examples=80, deadline=None)
def test_trials_lose_at_most_one_percent_at_every_moment(
    rate: list[float], guess: tuple[float, float], solo_s: list[float]
) -> None:
    jobs = jobs_of(solo_s, guess, rate)
    while jobs.now_s < 2000:
        jobs.step()
        assert jobs.lost_on_trial_s <= TRIALS_SHARE * jobs.shared_s + 1e-9


lateness = st.lists(st.floats(0.0, 0.3), min_size=1, max_size=20)


@given(rate=st.lists(rates, min_size=3, max_size=3), guess=guesses, solo_s=any_solo, late_s=lateness)
@settings(max_examples=80, deadline=None)
def test_looks_that_come_late_lose_no_more_than_the_latest_one_was_late(
    rate: list[float], guess: tuple[float, float], solo_s: list[float], late_s: list[float]
) -> None:
    jobs = jobs_of(solo_s, guess, rate)
    jobs.late_s = itertools.cycle(late_s)
    while jobs.now_s < 2000:
        jobs.step()
        later_than_known_s = max(0.0, max(late_s) - ALLOWED_LATE_S)
        assert jobs.lost_on_trial_s <= TRIALS_SHARE * jobs.shared_s + later_than_known_s + 1e-9


@given(
    rate=st.lists(rates, min_size=3, max_size=3),
    guess=guesses,
    solo_s=st.lists(st.floats(0.001, 0.5), min_size=3, max_size=5),
    leaves_s=st.lists(st.floats(1.0, 300.0), min_size=2, max_size=4),
)
@settings(max_examples=80, deadline=None)
def test_nor_do_trials_lose_more_where_jobs_end_in_them(
    rate: list[float], guess: tuple[float, float], solo_s: list[float], leaves_s: list[float]
) -> None:
    jobs = jobs_of(solo_s, guess, rate)
    for leaves in sorted(leaves_s):
        while jobs.now_s < leaves or (jobs.now_s < 2 * leaves and not jobs.pace.on_trial):
            jobs.step()
        if len(jobs.solo_s) > 1:
            del jobs.solo_s[max(jobs.solo_s)]
        jobs.step()
        assert jobs.lost_on_trial_s <= TRIALS_SHARE * jobs.shared_s + 1e-9


@given(
    rate=st.lists(rates, min_size=3, max_size=3),
    guess=guesses,
    solo_s=any_solo,
    changes=st.lists(st.tuples(st.sampled_from(("zico", "waterwave", TURNS, "phase")), rates), max_size=5),
)
@settings(max_examples=80, deadline=None)
def test_also_when_yields_change_no_trial_exceeds_what_was_measured_to_be_left(
    rate: list[float], guess: tuple[float, float], solo_s: list[float], changes: list[tuple[str, float]]
) -> None:
    jobs = jobs_of(solo_s, guess, rate)
    for what, new in [*changes, ("", 0.0)]:
        end_s = jobs.now_s + 300
        while jobs.now_s < end_s:
            tried, lost_s = jobs.pace.on_trial, jobs.pace.yields.lost_s
            jobs.step()
            if tried and jobs.pace.yields.lost_s > lost_s:
                assert jobs.pace.yields.lost_s <= TRIALS_SHARE * jobs.shared_s + 1e-9
        if what == "phase":
            jobs.phase = (*jobs.phase, 1)
        elif what:
            jobs.yields[what] = new


@given(zico=rates, waterwave=rates, solo_s=solo)
@settings(max_examples=40, deadline=None)
def test_modes_do_not_flap(zico: float, waterwave: float, solo_s: list[float]) -> None:
    jobs = Jobs(solo_s, {"zico": 2.0, "waterwave": 1.9}, zico=zico, waterwave=waterwave)
    jobs.run(4000)
    # Windows last two seconds and more; up to three trials switch twice each and double the stay, to 256 windows.
    assert jobs.switches <= 3 * 2 * (2 + 6 + 4000 / (256 * 2)) + 4


def trials(jobs: Jobs, most: int) -> list[float]:
    """How long each trial of the other sharing mode lasts."""
    found: list[float] = []
    while len(found) < most:
        assert jobs.now_s < 1000
        begun_s = jobs.now_s
        while jobs.pace.on_trial and jobs.pace.mode == "waterwave":
            jobs.step()
        if jobs.now_s > begun_s:
            found.append(jobs.now_s - begun_s)
        jobs.step()
    return found


@pytest.mark.parametrize(("close", "least_s", "most_s"), [(1.2, 2.0, 2.6), (0.8, 0.2, 1.0)])
def test_only_what_is_clearly_worse_is_not_measured_to_its_end(
    close: float, least_s: float, most_s: float
) -> None:
    jobs = Jobs([0.01, 0.02], {"zico": 1.5, "waterwave": 1.4}, zico=1.3, waterwave=close)
    (first_s,) = trials(jobs, 1)
    assert least_s <= first_s <= most_s and jobs.home == "zico"


def test_a_close_mode_is_judged_by_three_trials() -> None:
    jobs = Jobs([0.01, 0.02], {"zico": 1.5, "waterwave": 1.4}, zico=1.3, waterwave=1.2)
    trials(jobs, 1)
    jobs.yields["waterwave"] = 1.35  # by itself this is better by more than the margin
    trials(jobs, 2)
    assert jobs.home == "zico"  # on the mean it is not
    jobs.yields["waterwave"] = 1.6
    jobs.run(500)
    assert jobs.home == "waterwave"


def test_of_two_modes_that_do_as_much_the_more_even_one_is_better() -> None:
    jobs = Jobs([0.02, 0.1], {"zico": 1.9, "waterwave": 1.8}, zico=1.44, waterwave=1.42)
    jobs.parts["zico"] = 0.75  # the first one as if alone, the second one at a third
    jobs.run(120)
    assert jobs.home == "waterwave"
    told = jobs.pace.yields.to_json()["modes"]
    assert told["zico"]["yield"] == pytest.approx(1.44, abs=0.02)
    assert told["zico"]["efficiency"] == pytest.approx(efficiency([1.08, 0.36]), abs=0.02)
    assert told["waterwave"]["efficiency"] == pytest.approx(1.42, abs=0.02)


@given(turns=st.floats(0.6, 0.95), sharing=st.floats(0.6, 0.95))
def test_a_belief_that_is_wrong_is_given_up(turns: float, sharing: float) -> None:
    """Solo times that are told too short make every yield look small, that of taking turns too."""
    jobs = Jobs([0.02, 0.02], {"zico": 2.0}, zico=sharing)
    jobs.yields[TURNS] = turns
    jobs.run(120)
    worse, better = sorted((turns, sharing))
    if worse < 0.95 * better:
        assert jobs.yields[jobs.home or ""] == better


def test_two_of_three_that_slow_only_each_other_down_take_turns() -> None:
    jobs = Contending(3, {(1, 3): 3.0})
    jobs.run(60)
    assert jobs.pace.mode == GROUPS and jobs.pace.groups == (frozenset({1, 3}),)
    assert jobs.spent_s[GROUPS] > 50
    assert jobs.pace.yields.modes[GROUPS].efficiency == pytest.approx(efficiency([0.5, 0.5, 1]), abs=0.02)


@given(
    st.integers(3, 5).flatmap(
        lambda n: st.tuples(
            st.just(n), st.lists(st.floats(0, 4), min_size=n * (n - 1) // 2, max_size=n * (n - 1) // 2)
        )
    )
)
@settings(max_examples=60)
def test_groups_are_in_force_only_where_they_are_measured_to_be_better(
    found: tuple[int, list[float]],
) -> None:
    count, parts = found
    pairs = [(i, j) for i in range(1, count + 1) for j in range(1, i)]
    jobs = Contending(count, dict(zip(pairs, parts, strict=True)))
    jobs.run(4000)
    before_s = jobs.efficiency_s
    jobs.run(1000)
    fixed = max(efficiency([*jobs.rates("zico").values()]), 1.0)
    assert jobs.efficiency_s - before_s >= 0.96 * fixed * 1000


def test_groups_are_found_where_taking_turns_came_first() -> None:
    for jobs in (
        Contending(3, {(1, 2): 6.0, (1, 3): 0.3, (2, 3): 0.3}),  # sharing loses clearly, and is left early
        Contending(3, {(1, 3): 3.0}, forecast=1.0),  # by the curves sharing gains nothing
    ):
        jobs.run(600)
        assert jobs.pace.mode == GROUPS


def test_groups_that_were_measured_to_be_worse_are_not_believed_in_again() -> None:
    """Sharing has 1.2; jobs 1 and 3 look as if they slowed each other down, and have 1.08 in turns."""
    slowed = {(1, 2): 2.0, (1, 3): 0.0, (2, 1): 0.3, (2, 3): 0.3, (3, 1): 0.3, (3, 2): 2.0}
    jobs = Contending(3, slowed)
    jobs.run(10)
    assert jobs.taken == ["zico", GROUPS, "zico"]
    lost_s = jobs.pace.yields.lost_s
    for change in range(1, 30):
        jobs.phase = (change,)
        jobs.run(20)
        assert jobs.pace.mode == "zico" or jobs.pace.on_trial
    assert jobs.pace.yields.lost_s - lost_s < TRIALS_SHARE * 600
    jobs.slowed = {(1, 3): 3.0, (3, 1): 3.0}  # the same groups, of jobs that do something else
    jobs.phase = (100,)
    jobs.run(120)
    assert jobs.pace.mode == GROUPS


@pytest.mark.parametrize("seconds", [2, 3, 5, 10])
@pytest.mark.parametrize("two", [1.2, 1.4])
def test_groups_are_kept_through_a_slow_moment_of_the_machine(two: float, seconds: float) -> None:
    jobs = Contending(3, {(1, 3): two, (1, 2): two / 4, (2, 3): two / 4})
    jobs.run(60)
    assert jobs.pace.mode == GROUPS
    jobs.speed = 0.5
    jobs.run(seconds)
    jobs.speed = 1.0
    jobs.spent_s.clear()
    jobs.run(300)
    assert jobs.spent_s[GROUPS] > 0.8 * 300


def test_groups_that_put_a_job_off_are_not_kept_however_much_they_yield() -> None:
    # Side by side they come to a third of what the second one does, in groups to less than their half of the time.
    slowed, in_groups = {(1, 3): 3.0, (1, 2): 0.2, (2, 3): 0.2}, {1: 0.15, 2: 1.0, 3: 0.35}
    jobs = InGroups(3, slowed, in_groups)
    jobs.run(100)
    assert GROUPS in jobs.taken and jobs.pace.mode == "zico"
    assert efficiency([*in_groups.values()]) > 1.1 * efficiency([*jobs.rates("zico").values()])
    assert jobs.spent_s[GROUPS] < 10


def test_groups_that_were_left_in_the_middle_of_a_trial_s_repeats_are_left_all_the_same() -> None:
    jobs = InGroups(3, {(1, 3): 1.5}, {1: 0.5, 2: 0.9, 3: 0.5})  # about as good as side by side

    def between_two_trials() -> bool:
        return jobs.pace.mode == GROUPS and bool(jobs.pace._now.modes["zico"].readings)

    while not between_two_trials():
        jobs.run(0.5)
        assert jobs.now_s < 2000
    jobs.in_groups = {1: 0.1, 2: 0.9, 3: 1.0}
    before_s = jobs.spent_s[GROUPS]
    jobs.run(300)
    assert jobs.pace.mode != GROUPS and jobs.spent_s[GROUPS] - before_s < 30


def test_groups_that_put_a_job_off_may_be_good_for_what_the_jobs_do_next() -> None:
    slowed, fair = {(1, 3): 3.0, (1, 2): 0.2, (2, 3): 0.2}, {1: 0.45, 2: 0.8, 3: 0.45}
    jobs = InGroups(3, slowed, {1: 0.15, 2: 1.0, 3: 0.35})
    jobs.run(60)
    assert GROUPS in jobs.taken and jobs.pace.mode == "zico"
    jobs.slowed = {pair: 2 * part for pair, part in jobs.slowed.items()}
    jobs.in_groups, jobs.phase = fair, (1,)
    jobs.run(60)
    assert jobs.pace.mode == GROUPS


@pytest.mark.parametrize("solo_s", [0.05, 0.1, 0.3, 1.0])
def test_a_first_look_that_is_not_close_does_not_decide_that_there_are_no_groups(solo_s: float) -> None:
    jobs = Contending(3, {(1, 3): 8.0, (1, 2): 0.7, (2, 3): 0.7}, solo_s=solo_s)
    jobs.run(1000)
    assert jobs.spent_s.get(GROUPS, 0.0) > 400


def test_of_equal_jobs_that_advance_in_turns_none_is_put_off() -> None:
    """In every window of two seconds other jobs look slow."""

    class Wandering(Contending):
        def rates(self, mode: str) -> dict[int, float]:
            slow = int(self.now_s / 2) % 4 + 1
            of_mode = super().rates(mode)
            return {a: rate * (0.8 if a == slow else 1.05) for a, rate in of_mode.items()}

    jobs = Wandering(4, dict.fromkeys([(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)], 0.6))
    jobs.run(300)
    assert max(jobs.done.values()) < 1.2 * min(jobs.done.values())


def test_other_groups_are_looked_for_once_the_jobs_do_something_else() -> None:
    jobs = Contending(4, {(1, 2): 0.5})
    jobs.run(2000)
    jobs.slowed = {(3, 4): 4.0, (4, 3): 4.0}
    jobs.run(60)
    assert jobs.pace.mode == GROUPS and jobs.pace.groups == (frozenset({3, 4}),)


def test_sharing_is_tried_again_beside_groups_that_are_worth_less_than_turns() -> None:
    jobs = InGroups(3, {(1, 3): 6.0, (1, 2): 0.5, (2, 3): 0.5}, {1: 0.3, 2: 0.3, 3: 0.3})
    jobs.run(600)
    assert jobs.pace.mode == TURNS and GROUPS in jobs.taken
    jobs.slowed = dict.fromkeys(jobs.slowed, 0.1)
    jobs.run(3000)
    assert jobs.pace.mode == "zico"


def test_other_jobs_have_other_groups() -> None:
    jobs = Contending(3, {(1, 3): 3.0})
    jobs.run(30)
    jobs.done[4] = 1e-6
    jobs.slowed |= {(1, 4): 3.0, (4, 1): 3.0, (3, 4): 3.0, (4, 3): 3.0}
    jobs.run(60)
    assert jobs.pace.groups == (frozenset({1, 3, 4}),)


def test_what_the_jobs_do_may_change() -> None:
    jobs = Jobs([0.01, 0.02], {"zico": 2.0}, zico=0.8)
    jobs.run(60)
    assert jobs.home == TURNS
    jobs.yields["zico"] = 1.4
    jobs.run(600)
    assert jobs.home == "zico"
    jobs.yields["zico"] = 0.6
    jobs.run(30)  # what is in force is watched always
    assert jobs.home == TURNS


def test_slow_first_moments_do_not_decide() -> None:
    jobs = Jobs([0.1, 0.1], {"zico": 1.6, "waterwave": 1.59}, zico=1.35, waterwave=1.28)
    jobs.speed = 0.5
    jobs.run(0.8)
    jobs.speed = 1.0
    jobs.run(60)
    assert TURNS not in jobs.spent_s


@pytest.mark.parametrize("seconds", [1.7, 2.3, 3.1, 10, 40])
@pytest.mark.parametrize("begin_s", [20, 20.74, 21.11])
@pytest.mark.parametrize(("zico", "waterwave"), [(1.2, 1.15), (1.2, 0.9), (1.35, 1.0)])
@pytest.mark.parametrize("speed", [0.4, 0.6])
def test_a_machine_that_slows_down_slows_down_all_modes(
    zico: float, waterwave: float, begin_s: float, seconds: float, speed: float
) -> None:
    jobs = Jobs([0.1, 0.1], {"zico": 1.6, "waterwave": 1.59}, zico=zico, waterwave=waterwave)
    jobs.run(begin_s)
    jobs.speed = speed
    jobs.run(seconds)
    jobs.speed = 1.0
    before_s = dict(jobs.spent_s)
    jobs.run(60)
    worse_s = {
        mode: s - before_s.get(mode, 0) for mode, s in jobs.spent_s.items() if jobs.yields[mode] < 0.95 * zico
    }
    assert sum(worse_s.values()) < 10


@pytest.mark.parametrize("better", [1.2, 1.4, 1.8])
@pytest.mark.parametrize(("solo_s", "within_s"), [(0.1, 20), (1.0, 80)])
@pytest.mark.parametrize("at_s", [10, 60, 300])
def test_a_mode_that_becomes_worse_by_itself_is_left(
    better: float, solo_s: float, within_s: float, at_s: float
) -> None:
    jobs = Jobs([solo_s, solo_s], {"zico": 2.0}, zico=better)
    jobs.run(at_s)
    jobs.yields["zico"] = 0.6
    jobs.run(within_s)
    assert jobs.pace.mode == TURNS


def test_all_may_stand_still_for_a_while() -> None:
    jobs = Jobs([0.1, 0.1], {"zico": 1.6, "waterwave": 1.59}, zico=1.6, waterwave=1.3)
    jobs.run(20.37)
    jobs.speed = 0.0
    jobs.run(3.1)
    jobs.speed = 1.0
    jobs.run(60)
    assert jobs.spent_s.get(TURNS, 0) < 3


def test_turns_are_never_believed_to_be_worth_more_than_one_job_alone() -> None:
    jobs = Jobs([0.1, 0.1], {"zico": 1.6}, zico=1.6)
    jobs.speed = 0.62  # the first iterations
    jobs.run(2.6)
    jobs.speed = 1.0
    jobs.run(30)
    jobs.phase, jobs.yields["zico"] = (1,), 1.3
    jobs.run(60)
    assert TURNS not in jobs.spent_s


def test_another_phase_makes_beliefs_of_what_was_measured() -> None:
    jobs = Jobs([0.01, 0.02], {"zico": 2.0}, zico=0.8)
    jobs.run(60)
    jobs.phase = (1,)
    jobs.step()
    assert jobs.pace.mode == TURNS and not jobs.pace.settled
    jobs.yields["zico"] = 1.5
    jobs.run(120)
    assert jobs.home == "zico"


def test_a_job_that_comes_or_goes_begins_anew() -> None:
    jobs = Jobs([0.01, 0.02, 0.03], {"zico": 2.0}, zico=0.8)
    jobs.run(60)
    assert jobs.home == TURNS
    del jobs.solo_s[1]
    jobs.step()
    assert jobs.pace.mode == "zico"
    del jobs.solo_s[2]
    jobs.run(100)
    assert jobs.pace.mode is None
    told = jobs.pace.yields
    assert told.turns_s == pytest.approx(jobs.spent_s[TURNS], abs=LOOK_S)
    assert told.modes["zico"].measured == pytest.approx(0.8)
    as_json = told.to_json()
    assert as_json["solo_s"] == {"1": 0.01, "2": 0.02, "3": 0.03}
    assert as_json["yield_side_by_side"] == pytest.approx(0.8)
    assert as_json["modes"][TURNS]["yield"] == as_json["yield_in_turns"] == pytest.approx(1.0)


def test_jobs_that_are_still_loading_are_not_there() -> None:
    pace, loading = Pace(), Progress(0.0, 0.003)
    forecast = {"zico": 2.0, TURNS: 1.0}
    for look in range(100):
        assert (
            pace.look(look * LOOK_S, {1: loading, 2: Progress(100.0 * look, 0.003)}, lambda _: forecast)
            is None
        )
    now_s = 100 * LOOK_S
    for _ in range(100):  # both at once, as fast as alone
        done = (now_s - 99 * LOOK_S) / 0.003
        jobs = {1: Progress(done, 0.003), 2: Progress(10_000 + done, 0.003)}
        assert pace.look(now_s, jobs, lambda _: forecast) == "zico"
        now_s += pace.look_again_s
    assert pace.yields.modes["zico"].measured == pytest.approx(2, rel=0.01)


def test_it_looks_closely_only_while_a_verdict_is_near() -> None:
    jobs = Jobs([0.01, 0.02], zico=1.5)
    jobs.step()
    assert jobs.pace.look_again_s == CLOSE_LOOK_S
    jobs.run(10)
    assert jobs.pace.look_again_s == LOOK_S


def test_a_clear_case_is_measured_sooner() -> None:
    meter = Meter()
    jobs = {1: Progress(0.0, 0.1), 2: Progress(0.0, 0.1)}
    meter.restart(jobs)
    meter.count(jobs)
    assert meter.trial_s(0.0) == meter.trial_s(-1.0) == meter.trial_s(0.01) == pytest.approx(0.2 + 2.0)
    assert meter.trial_s(0.1) == pytest.approx(0.2 + 1.0)
    assert meter.trial_s(1.0) == pytest.approx(0.2 + 0.4)


def test_the_meter_counts_work_of_jobs_with_different_lengths() -> None:
    meter = Meter()
    jobs = {1: Progress(10.0, 0.5), 2: Progress(0.0, 0.1)}
    meter.restart(jobs)
    meter.switch(0.0)
    meter.count(jobs)
    assert meter.read(0.5) is None and meter.read(1.0) is None  # the window begins here
    meter.count({1: Progress(14.0, 0.5), 2: Progress(10.0, 0.1)})
    reading = meter.read(3.0)
    assert reading and reading.stp == pytest.approx((4 * 0.5 + 10 * 0.1) / 2.0)
    assert reading.measured == pytest.approx(efficiency([1.0, 0.5]))
    assert reading.doubt == pytest.approx(doubt([1.0, 0.5], [0.125, 0.025])) and not reading.full
    assert meter.lost_s(3.0, 1.5) == pytest.approx(3.0 * (1 - efficiency([2 / 3, 1 / 3]) / 1.5))


def test_a_solo_time_that_was_disturbed_is_mended() -> None:
    times = SoloTimes()
    assert times.seconds(1, 10**8) == 0.1
    times.note(1, [0, 2 * 10**7, 3 * 10**7], 10**8)  # the rest of the iteration allocates nothing
    assert times.seconds(1, 10**8) == 0.1
    times.note(1, [0, 4 * 10**7, 6 * 10**7], 5 * 10**7)
    times.note(1, [0, 6 * 10**7, 11 * 10**7], 11 * 10**7)  # slower again, beside others
    assert times.seconds(1, 10**8) == 0.06
    times.note(2, [], 0)
    assert times.seconds(2, 10**8) == 0.1


def test_a_phase_is_of_size_not_of_small_change() -> None:
    assert phase([100, 1000, 100]) == phase([100, 1001, 100])
    assert phase([100, 1000, 100]) != phase([100, 1200, 100])
    assert phase([100] * 10) != phase([100] * 12)
    assert phase([]) == (0, 0)
