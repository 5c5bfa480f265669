from dataclasses import dataclass, field

import pytest

from gpushare.host import stranded
from gpushare.native import shim
from gpushare.native.shim import Stranded

MIB = 1 << 20


@dataclass
class FakeRunner:
    name: str
    account: int
    runs: bool = True
    why: list[str] = field(default_factory=list)

    def abandon(self, why: str) -> None:
        self.why.append(why)
        self.runs = False


def found(for_s: float) -> Stranded:
    return Stranded(for_s, 96 * MIB, 120 * MIB, 170 * MIB, 220 * MIB + 1)


def test_a_stranded_job_is_told_of_once_and_abandoned_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now: dict[int, Stranded | None] = {1: None, 2: found(1.0)}
    monkeypatch.setattr(shim, "stranded", lambda account: now[account])
    notes: list[str] = []
    runners = [FakeRunner("a", 1), FakeRunner("b", 2)]
    lookout = stranded.Lookout(runners, notes.append)
    for _ in range(3):
        lookout.look()
    assert len(notes) == 1 and notes[0].startswith("b waits: its 96.0 MiB were copied out")
    assert "120.0 MiB" in notes[0] and "170.0 MiB" in notes[0] and "`gpushare budget 221MiB`" in notes[0]
    assert notes[0].endswith("it ends in 30 s if nothing changes")
    assert runners[1].runs
    now[2] = found(stranded.PATIENCE_S)
    lookout.look()
    lookout.look()
    assert len(runners[1].why) == 1 and "96.0 MiB" in runners[1].why[0]
    assert runners[0].runs and len(notes) == 1


def test_one_that_came_back_and_is_stranded_again_is_told_of_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now: list[Stranded | None] = [found(1.0)]
    monkeypatch.setattr(shim, "stranded", lambda account: now[0])
    notes: list[str] = []
    lookout = stranded.Lookout([FakeRunner("a", 1)], notes.append)
    for found_now in (found(1.0), None, found(2.0)):
        now[0] = found_now
        lookout.look()
    assert len(notes) == 2
