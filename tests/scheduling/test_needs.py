"""What a job needs that has begun."""

from dataclasses import dataclass

import pytest

from gpushare.native import doors, usage
from gpushare.scheduling.admission import Need
from gpushare.scheduling.needs import Needs


@dataclass
class Memory:
    held_bytes: int
    copied_out_bytes: int


def test_what_is_copied_out_is_to_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or another job was begun in its room."""
    monkeypatch.setattr(doors, "curve_version", lambda account: None)
    monkeypatch.setattr(doors, "curve_get", lambda account: None)
    monkeypatch.setattr(usage, "memory", lambda account: Memory(2, 60))
    assert Needs()(1) == Need(62, 62)
