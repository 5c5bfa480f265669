"""Changing the budget of a run that is under way: the question to its host, and the host's answer."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from typing import Any

from gpushare.launcher.plan import PAGE_BYTES

_ANSWER_WITHIN_S = 10.0


class BudgetQuestions:
    """One at a time, from the listener's thread; `answered` comes from the one that follows the host."""

    def __init__(self, late: Callable[[int, str | None], object]) -> None:
        """:param late: gets an answer that came after its question was given up: what was wanted, and the refusal."""
        self._asked = 0
        self._late = late
        self._given_up: dict[int, int] = {}
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()

    def ask(
        self, send: Callable[[dict[str, Any]], object], wanted_bytes: int, *, force: bool
    ) -> dict[str, Any]:
        """`failed` with the reason if the host says nothing; else `refused`, the reason or None, and what is wanted in
        whole pages."""
        wanted_bytes -= wanted_bytes % PAGE_BYTES
        self._asked += 1
        send({"op": "budget", "number": self._asked, "budget_bytes": wanted_bytes, "force": force})
        answer = self._answer(self._asked)
        if answer is None:
            self._given_up[self._asked] = wanted_bytes
            waited = f"the host has not answered for {_ANSWER_WITHIN_S:.0f} s"
            return {"failed": f"{waited}: if its jobs are only starting it will later, and the run says so"}
        return {"refused": answer["refused"], "wanted_bytes": wanted_bytes}

    def answered(self, message: dict[str, Any]) -> None:
        """The host has said something about a budget."""
        wanted_bytes = self._given_up.pop(message["number"], None)
        if wanted_bytes is None:
            self._answers.put(message)
        else:
            self._late(wanted_bytes, message["refused"])

    def _answer(self, number: int) -> dict[str, Any] | None:
        """The host's, past those of questions that were given up; None if there is none in time."""
        deadline = time.monotonic() + _ANSWER_WITHIN_S
        while (left_s := deadline - time.monotonic()) > 0:
            try:
                answer = self._answers.get(timeout=left_s)
            except queue.Empty:
                break
            if answer["number"] == number:
                return answer
        return None
