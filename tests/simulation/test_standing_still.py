"""Sequences of calls after which nobody used to go on any more, and nothing was said."""

import pytest

from gpushare.native.permits import NEVER, NativePermit
from gpushare.native.simulation import Answer, SimulatedGovernor

MS, PAGE, BUDGET = 10**6, 4096, 100


class Scene:
    """A budget of 100 pages and a clock; sizes in pages."""

    def __init__(self, order: str = "fifo") -> None:
        self.governor = SimulatedGovernor(policy="zico", page_bytes=PAGE, budget_bytes=BUDGET * PAGE)
        self._now_ns = 0
        self.governor.set_time(0)
        self.governor.order(order, 500 * MS)

    def job(self, peak: int, residue: int = 0) -> int:
        held = [max(1, peak // 2) * PAGE, peak * PAGE]
        return self.governor.job_begin(held, [0, 50 * MS], residue * PAGE, 100 * MS)

    def unknown(self) -> int:
        return self.governor.job_begin([], [], 0, 0)

    @property
    def now_s(self) -> float:
        return self._now_ns / 1e9

    def frees_all_but(self, account: int, pages: int) -> None:
        self.governor.free(account, pages * PAGE)

    def copies_out(self, *accounts: int) -> list[int]:
        return [self.governor.job(x).copies_out for x in accounts]

    def iterates(self, account: int, peak: int, residue: int) -> Answer:
        """For a tenth of a second, if it goes on at its door and holds its peak at once."""
        if (answer := self.governor.door(account)) is not Answer.GOES_ON:
            return answer
        assert self.holds(account, peak) is Answer.GOES_ON
        self.goes_on_for(0.1)
        self.frees_all_but(account, residue)
        return answer

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


def both_come_to_keep_40(scene: Scene, ranks: dict[int, int]) -> tuple[int, int]:
    """Of two that claim 70: each at its door, where it has no room beside the other one."""
    governor = scene.governor
    b, c = scene.job(70, 10), scene.job(70, 10)
    for account, rank in ranks.items():
        governor.rank(account, rank)
    assert governor.door(b) is Answer.GOES_ON and scene.holds(b, 50) is Answer.GOES_ON
    scene.goes_on_for(0.01)
    assert governor.door(c) is Answer.GOES_ON
    governor.permits([NativePermit(b, c, NEVER, 0, 0), NativePermit(c, b, NEVER, 0, 0)])
    assert scene.holds(b, 70) is Answer.GOES_ON
    scene.frees_all_but(b, 40)
    assert governor.door(b) is Answer.WAITS
    assert scene.holds(c, 50) is Answer.GOES_ON
    scene.frees_all_but(c, 40)
    assert governor.door(c) is Answer.WAITS
    return b, c


@pytest.mark.parametrize("third_holds", [None, 0, 1])
def test_doors_that_keep_each_other_shut(third_holds: int | None) -> None:
    """Each keeps so much that the other one has no room; a third job in no iteration was taken to make some."""
    scene = Scene()
    governor = scene.governor
    if third_holds is not None:
        scene.holds(scene.unknown(), third_holds)
    b, c = both_come_to_keep_40(scene, {})
    scene.goes_on_for(15)
    (goes_on,) = governor.ready()
    assert governor.look(goes_on) is Answer.GOES_ON
    other = c if goes_on == b else b
    assert governor.job(other).copies_out == 1 and scene.held(other) == 0
    governor.job_end(goes_on)
    scene.goes_on_for(1)
    assert governor.look(other) is Answer.GOES_ON and scene.held(other) == 40


@pytest.mark.parametrize("asks_last", [0, 1, 2])
def test_of_set_ups_that_fill_the_budget_the_one_that_goes_last_leaves(asks_last: int) -> None:
    """It was the one that asked last: the first job ended last, for a second of imports."""
    scene = Scene()
    jobs = [scene.unknown() for _ in range(3)]
    has, wants = (18, 50, 28), (23, 56, 33)
    assert {scene.holds(x, n) for x, n in zip(jobs, has, strict=True)} == {Answer.GOES_ON}
    for i in sorted(range(3), key=lambda i: i == asks_last):
        assert scene.holds(jobs[i], wants[i]) is Answer.WAITS
    scene.goes_on_for(0.2)
    assert scene.copies_out(*jobs) == [0, 0, 1]
    assert scene.governor.ready() == jobs[:2]


@pytest.mark.parametrize(("ranks", "leaves"), [((0, 0), 1), ((10, -10), 0), ((-10, 10), 1)])
def test_who_goes_first_by_its_rank_is_not_the_one_to_leave(ranks: tuple[int, int], leaves: int) -> None:
    """It was always the one that began last."""
    scene = Scene("ranked")
    jobs = both_come_to_keep_40(scene, dict(zip((1, 2), ranks, strict=True)))
    scene.goes_on_for(2)
    assert scene.copies_out(*jobs) == [int(i == leaves) for i in range(2)]
    assert scene.governor.ready() == [jobs[1 - leaves]]


def grown_past(scene: Scene) -> tuple[int, int]:
    """Two jobs of which the first claims 70 and keeps 10; the second one has come to keep 35 in its first iteration."""
    first = scene.unknown()
    scene.holds(first, 10)
    assert [scene.iterates(first, 70, 10) for _ in range(2)] == [Answer.GOES_ON] * 2
    assert scene.governor.door(first) is Answer.GOES_ON and scene.holds(first, 70) is Answer.GOES_ON
    second = scene.unknown()
    assert scene.holds(second, 5) is Answer.GOES_ON
    assert scene.governor.door(second) is Answer.WAITS
    scene.frees_all_but(first, 10)
    assert scene.governor.door(first) is Answer.WAITS
    assert scene.governor.look(second) is Answer.GOES_ON and scene.holds(second, 40) is Answer.GOES_ON
    scene.goes_on_for(0.1)
    scene.frees_all_but(second, 35)
    return first, second


def iterates_until(scene: Scene, account: int, other: int, most_s: float) -> float:
    """How long it did, 40 pages at most and 35 between, until the other one went on."""
    begun_s = scene.now_s
    while scene.now_s < begun_s + most_s:
        if scene.iterates(account, 40, 35) is not Answer.GOES_ON:
            scene.goes_on_for(0.1)
        if other in scene.governor.ready():
            break
    return scene.now_s - begun_s


def test_a_door_is_not_passed_for_ever_by_a_job_that_has_come_to_keep_more() -> None:
    scene = Scene()
    first, second = grown_past(scene)
    assert 9 < iterates_until(scene, second, first, 60) < 11
    assert scene.copies_out(first, second) == [0, 1]
    assert scene.governor.look(first) is Answer.GOES_ON
    scene.governor.job_end(first)
    scene.goes_on_for(0.1)
    assert scene.governor.ready() == [second]


def test_under_fair_nobody_leaves_for_it() -> None:
    """Who leaves could not come back however little it has been granted by then."""
    scene = Scene("fair")
    first, second = grown_past(scene)
    assert iterates_until(scene, second, first, 20) >= 20
    assert scene.copies_out(first, second) == [0, 0]


def test_a_set_up_is_not_kept_waiting_for_ever_by_one_that_goes_after_it() -> None:
    """Two of three waited in their set-ups, each with what the other one lacked, until the first one ended."""
    scene = Scene()
    first, second, third = scene.job(20, 8), scene.unknown(), scene.unknown()
    assert [scene.holds(x, n) for x, n in ((first, 8), (second, 50), (third, 28))] == [Answer.GOES_ON] * 3
    assert [scene.holds(x, n) for x, n in ((second, 60), (third, 32))] == [Answer.WAITS] * 2
    while scene.now_s < 30 and not scene.governor.ready():
        assert scene.iterates(first, 20, 8) is Answer.GOES_ON
    assert 9 < scene.now_s < 11 and scene.copies_out(first, second, third) == [0, 0, 1]
    assert scene.governor.ready() == [second] and scene.governor.look(second) is Answer.GOES_ON


def test_what_a_job_keeps_for_a_while_only_keeps_nobody_out() -> None:
    scene = Scene()
    first, second = grown_past(scene)
    for _ in range(40):
        assert scene.iterates(second, 40, 35) is Answer.GOES_ON
    assert scene.iterates(second, 40, 5) is Answer.GOES_ON
    scene.goes_on_for(0.1)
    assert scene.governor.ready() == [first] and scene.copies_out(first, second) == [0, 0]
