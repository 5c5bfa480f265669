"""Side by side or in turns, against jobs whose true yields are known."""

from hypothesis import given
from hypothesis import strategies as st

from gpushare.scheduling.pace import Pace, Progress

LOOK_S = 0.25


class Jobs:
    """Jobs that advance evenly, with another yield in each mode."""

    def __init__(self, solo_s: list[float], sharing: float, turns: float) -> None:
        self.pace = Pace()
        self.solo_s = dict(enumerate(solo_s, 1))
        self.sharing, self.turns = sharing, turns
        self.now_s = 0.0
        self.done = dict.fromkeys(self.solo_s, 0.0)
        self.in_turns_s = 0.0

    def run(self, seconds: float) -> None:
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            jobs = {a: Progress(self.done[a], s) for a, s in self.solo_s.items()}
            in_turns = self.pace.look(self.now_s, jobs)
            self.now_s += LOOK_S
            self.in_turns_s += LOOK_S * in_turns
            share = (self.turns if in_turns else self.sharing) * LOOK_S / len(self.solo_s)
            for account, solo_s in self.solo_s.items():
                self.done[account] += share / solo_s


@given(sharing=st.floats(0.3, 0.95), solo_s=st.lists(st.floats(0.001, 0.5), min_size=2, max_size=5))
def test_what_loses_together_takes_turns(sharing: float, solo_s: list[float]) -> None:
    jobs = Jobs(solo_s, sharing, turns=1.0)
    jobs.run(30)
    assert jobs.pace.turns and not jobs.pace.on_trial
    before_s = jobs.in_turns_s
    jobs.run(1000)
    assert jobs.in_turns_s - before_s > 950  # now and then sharing is tried again


@given(sharing=st.floats(1.11, 2.0))
def test_what_gains_is_never_put_to_the_test(sharing: float) -> None:
    jobs = Jobs([0.01, 0.3], sharing, turns=1.0)
    jobs.run(500)
    assert jobs.in_turns_s == 0 and jobs.pace.yields.turns is None


def test_a_small_gain_is_kept_after_a_trial() -> None:
    jobs = Jobs([0.01, 0.02], sharing=1.05, turns=1.0)
    jobs.run(1000)
    assert not jobs.pace.turns
    assert 0 < jobs.in_turns_s < 50


def test_what_the_jobs_do_may_change() -> None:
    jobs = Jobs([0.01, 0.02], sharing=0.8, turns=1.0)
    jobs.run(60)
    assert jobs.pace.turns
    jobs.sharing = 1.4
    jobs.run(600)
    assert not jobs.pace.turns


def test_a_job_that_comes_or_goes_begins_anew() -> None:
    jobs = Jobs([0.01, 0.02, 0.03], sharing=0.8, turns=1.0)
    jobs.run(60)
    assert jobs.pace.turns
    del jobs.solo_s[1]
    jobs.run(LOOK_S)
    assert not jobs.pace.turns
    del jobs.solo_s[2]
    jobs.run(100)
    assert not jobs.pace.turns
    assert abs(jobs.pace.yields.turns_s - jobs.in_turns_s) <= LOOK_S
