"""Settings of the interpreter that can't be split."""

import gc

import pytest

from gpushare.isolation import settings


def test_thresholds_that_torch_sets_for_a_moment_are_no_jobs_wish(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "set_threshold", lambda *_: pytest.fail("a job has set it"))
    before = gc.get_threshold()
    plain = settings.plain_collector()
    try:
        plain.set_threshold(before[0], before[1], 77)
        assert gc.get_threshold()[2] == 77 and plain.get_threshold()[2] == 77
    finally:
        plain.set_threshold(*before)
