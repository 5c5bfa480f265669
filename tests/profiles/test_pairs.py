"""Factors of pairs: kept, averaged, and never taken from a damaged file."""

import os
from pathlib import Path

import pytest

from gpushare.profiles import pairs
from gpushare.profiles.pairs import LearnedPair, PairFactor


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_a_pair_is_the_same_in_either_order() -> None:
    assert pairs.find("a", "b") is None
    assert pairs.learn("a", "b", 1.5) == PairFactor(1.5, 1)
    assert pairs.find("b", "a") == PairFactor(1.5, 1)
    assert pairs.find("a", "a") is None and pairs.find("a", "c") is None


def test_runs_are_averaged_and_later_ones_keep_a_weight() -> None:
    pairs.learn("a", "b", 1.0)
    assert pairs.learn("a", "b", 2.0) == PairFactor(1.5, 2)
    for _ in range(60):
        pairs.learn("a", "b", 3.0)
    found = pairs.find("a", "b")
    assert found is not None and found.runs == 62 and found.factor == pytest.approx(3, abs=0.01)


def test_the_newest_pairs_come_first() -> None:
    for age, (first, second) in enumerate([("a", "b"), ("c", "a"), ("d", "e")]):
        pairs.learn(first, second, 1.0 + age / 4)
        os.utime(pairs.path_for(first, second), (1000 - age, 1000 - age))
    pairs.path_for("f", "g").write_text("{")
    newest = [LearnedPair("a", "b", PairFactor(1.0, 1)), LearnedPair("c", "a", PairFactor(1.25, 1))]
    assert pairs.newest(3) == newest  # of the damaged one nothing is known
    assert len(pairs.newest(64)) == 3


def test_nothing_is_known_before_the_first_run() -> None:
    assert pairs.newest(64) == []


def test_no_pair_is_faster_together() -> None:
    assert pairs.learn("a", "b", 0.5).factor == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"format": "gpushare-pair", "version": 1, "first": "a", "second": "b", "factor": 1.5, "runs": 1}',
        '{"format": "gpushare-pair", "version": 2, "first": "a", "second": "b", "factor": 0.2, "runs": 1}',
        '{"format": "gpushare-pair", "version": 2, "first": "a", "second": "b", "factor": "much", "runs": 1}',
        '{"format": "gpushare-pair", "version": 2, "factor": 1.5, "runs": 1}',
    ],
)
def test_what_can_not_be_read_is_learned_anew(text: str) -> None:
    path = pairs.path_for("a", "b")
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert pairs.find("a", "b") is None
    assert pairs.learn("a", "b", 1.25) == PairFactor(1.25, 1)


def test_where_nothing_can_be_written_a_run_goes_on(cache: Path) -> None:
    (cache / "gpushare").write_text("a file where the folder would be")
    assert pairs.learn("a", "b", 1.25) == PairFactor(1.25, 1)
    assert pairs.find("a", "b") is None
