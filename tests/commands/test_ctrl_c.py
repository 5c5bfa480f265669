"""Ctrl-C outside a run, and at its end."""

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpushare import commands
from gpushare.commands import contention, reports
from gpushare.commands.interrupts import Interrupts


@pytest.fixture(autouse=True)
def as_a_terminal_has_it() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_nothing_is_said_of_what_has_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(commands.cli, "main", lambda **_: signal.raise_signal(signal.SIGINT))
    assert commands._run() == 130
    assert capsys.readouterr().err == "gpushare: interrupted\n"


def test_it_is_held_back_and_comes_where_it_is_let_through() -> None:
    with Interrupts() as interrupts:
        with interrupts.let_through():
            pass
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), interrupts.let_through():
            pytest.fail("it came before")
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_what_is_let_through_can_be_given_up() -> None:
    with Interrupts() as interrupts, pytest.raises(KeyboardInterrupt), interrupts.let_through():
        signal.raise_signal(signal.SIGINT)


def test_ignored_it_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Interrupts() as interrupts, interrupts.let_through():
        signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_the_summary_is_told_and_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @dataclass
    class Done:
        incomplete: bool = False

    def summary(work: Any) -> dict[str, Any]:
        signal.raise_signal(signal.SIGINT)
        return {"of": "a run", "incomplete": work.incomplete}

    monkeypatch.setattr(reports, "_keep_profiles", lambda work: signal.raise_signal(signal.SIGINT))
    monkeypatch.setattr(reports, "_summary", summary)
    monkeypatch.setattr(reports, "render_summary", lambda summary, console: print(summary))
    monkeypatch.setattr(contention, "learn_from", lambda work: pytest.fail("it was interrupted before"))
    file: Path = tmp_path / "s.json"
    runs: Any = [Done()]
    with Interrupts() as interrupts:
        assert reports.conclude(runs, file, interrupts, waits=False)
    out, err = capsys.readouterr()
    assert "a run" in out and "a run" in file.read_text()
    assert err == "gpushare: nothing was learned of the jobs as a pair: interrupted\n"
