"""Sequences of calls after which nobody used to go on any more, and nothing was said."""

import pytest

from gpushare.native.permits import NEVER, NativePermit
from gpushare.native.simulation import Answer, SimulatedGovernor

MS, PAGE, BUDGET = 10**6, 4096, 100


class Scene:
    """A budget of 100 pages and a clock; sizes in pages."""

    def __init__(self) -> None:
        self.governor = SimulatedGovernor(policy="zico", page_bytes=PAGE, budget_bytes=BUDGET * PAGE)
        self._now_ns = 0
        self.governor.set_time(0)

    def job(self, peak: int, residue: int = 0) -> int:
        held = [max(1, peak // 2) * PAGE, peak * PAGE]
        return self.governor.job_begin(held, [0, 50 * MS], residue * PAGE, 100 * MS)

    def holds(self, account: int, pages: int) -> Answer:
        return self.governor.hold(account, pages * PAGE)

    def goes_on_for(self, seconds: float) -> None:
        end_ns = self._now_ns + round(seconds * 1e9)
        while self._now_ns < end_ns:
            self._now_ns += 10 * MS
            self.governor.set_time(self._now_ns)
            self.governor.tick()
            assert not self.governor.check()

    def held(self, account: int) -> int:
        return self.governor.job(account).held_bytes // PAGE


def three_that_ask(scene: Scene, *pages: int) -> dict[int, Answer]:
    """What becomes of three open iterations that each hold 30 and come to want so much; who is answered ends."""
    governor = scene.governor
    jobs = [scene.job(30) for _ in pages]
    assert {governor.door(x) for x in jobs} == {Answer.GOES_ON}
    assert {scene.holds(x, 30) for x in jobs} == {Answer.GOES_ON}
    assert [scene.holds(x, n) for x, n in zip(jobs, pages, strict=True)] == [Answer.WAITS] * 3
    answers = {}
    for _ in range(20):
        scene.goes_on_for(1)
        for x in governor.ready():
            answers[x] = governor.look(x)
            governor.free(x, 0)
            governor.job_end(x)
    return answers


def test_those_that_are_away_and_can_never_come_back_are_refused() -> None:
    """Each was taken to be somebody of whom the other one might still get something."""
    refused, goes_on = Answer.REFUSED, Answer.GOES_ON
    assert three_that_ask(Scene(), 105, 85, 106) == {1: refused, 2: goes_on, 3: refused}


def test_two_leave_for_one_where_one_alone_would_not_help() -> None:
    assert three_that_ask(Scene(), 75, 75, 75) == dict.fromkeys((1, 2, 3), Answer.GOES_ON)


def test_one_that_is_away_beside_an_idle_one_is_refused_where_the_budget_is_too_small() -> None:
    scene = Scene()
    governor = scene.governor
    governor.job_begin([], [], 0, 0)  # never does anything
    a, b = scene.job(30), scene.job(30)
    assert {governor.door(x) for x in (a, b)} == {Answer.GOES_ON}
    assert {scene.holds(x, 30) for x in (a, b)} == {Answer.GOES_ON}
    assert [scene.holds(b, 75), scene.holds(a, 106)] == [Answer.WAITS] * 2
    scene.goes_on_for(3)
    assert governor.look(b) is Answer.GOES_ON
    governor.free(b, 0)
    governor.job_end(b)
    scene.goes_on_for(1)
    assert governor.look(a) is Answer.REFUSED


@pytest.mark.parametrize("third_holds", [None, 0, 1])
def test_doors_that_keep_each_other_shut(third_holds: int | None) -> None:
    """Each keeps so much that the other one has no room; a third job in no iteration was taken to make some."""
    scene = Scene()
    governor = scene.governor
    if third_holds is not None:
        third = governor.job_begin([], [], 0, 0)
        scene.holds(third, third_holds)
    b, c = scene.job(70, 10), scene.job(70, 10)
    assert governor.door(b) is Answer.GOES_ON and scene.holds(b, 50) is Answer.GOES_ON
    scene.goes_on_for(0.01)
    assert governor.door(c) is Answer.GOES_ON
    governor.permits([NativePermit(b, c, NEVER, 0, 0), NativePermit(c, b, NEVER, 0, 0)])
    assert scene.holds(b, 70) is Answer.GOES_ON
    governor.free(b, 40 * PAGE)
    assert governor.door(b) is Answer.WAITS
    assert scene.holds(c, 50) is Answer.GOES_ON
    governor.free(c, 40 * PAGE)
    assert governor.door(c) is Answer.WAITS
    scene.goes_on_for(15)
    (goes_on,) = governor.ready()
    assert governor.look(goes_on) is Answer.GOES_ON
    other = c if goes_on == b else b
    assert governor.job(other).copies_out == 1 and scene.held(other) == 0
    governor.job_end(goes_on)
    scene.goes_on_for(1)
    assert governor.look(other) is Answer.GOES_ON and scene.held(other) == 40
