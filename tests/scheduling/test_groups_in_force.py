"""Groups as a mode, for jobs that slow each other down in known ways."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measured_jobs import Contending, InGroups

from gpushare.scheduling.efficiency import efficiency
from gpushare.scheduling.snapshot import GROUPS, TURNS
from gpushare.scheduling.trials import TRIALS_SHARE


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
        return jobs.pace.mode == GROUPS and bool(jobs.pace._in_force.modes["zico"].readings)

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
