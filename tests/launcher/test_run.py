"""The parent's side of a run, with nobody on the other one."""

import contextlib
import signal
from pathlib import Path
from typing import Any

import pytest

from gpushare.jobs import parse_job
from gpushare.launcher.logs import Logs
from gpushare.launcher.plan import RunPlan
from gpushare.launcher.run import Run


class Host:
    """Gets what signals send."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    def kill(self) -> None:
        self.sent.append({"op": "kill"})


class InterruptedScreen:
    """Ctrl-C comes while it is taken down."""

    stopped = False
    aside = contextlib.nullcontext

    def note(self, text: str) -> None:
        pass

    def stop(self) -> None:
        signal.raise_signal(signal.SIGINT)
        self.stopped = True


def test_ctrl_c_while_the_screen_is_taken_down_does_not_end_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen: Any = InterruptedScreen()
    host: Any = Host()
    plan = RunPlan([parse_job("a.py", tmp_path)], [None], 64 << 20, "zico")
    run = Run(plan, Logs(tmp_path, ["a"]), screen)
    monkeypatch.setattr(run, "_execute", lambda _: run._signals.reach(host))
    try:
        run.execute()
    except KeyboardInterrupt:
        pytest.fail("it came through")
    assert screen.stopped and host.sent == [{"op": "signal", "number": signal.SIGINT}]
