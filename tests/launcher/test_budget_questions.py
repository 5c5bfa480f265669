"""`gpushare budget` gives up after a while; the run still tells what the host answers then."""

from typing import Any

import pytest

from gpushare.launcher import budget as budget_module
from gpushare.launcher.budget import BudgetQuestions

PAGE = 2 << 20


@pytest.mark.parametrize("refused", [None, "the jobs need more"])
def test_an_answer_that_comes_late_is_told(monkeypatch: pytest.MonkeyPatch, refused: str | None) -> None:
    monkeypatch.setattr(budget_module, "_ANSWER_WITHIN_S", 0.01)
    told: list[tuple[int, str | None]] = []
    sent: list[dict[str, Any]] = []
    questions = BudgetQuestions(lambda wanted, why: told.append((wanted, why)))
    answer = questions.ask(sent.append, 64 * PAGE + 1, force=False)
    assert "has not answered" in answer["failed"] and not told
    questions.answered({"number": sent[0]["number"], "refused": refused})
    assert told == [(64 * PAGE, refused)]


def test_the_answer_to_a_question_given_up_is_not_taken_for_the_next_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(budget_module, "_ANSWER_WITHIN_S", 0.01)
    told: list[int] = []
    sent: list[dict[str, Any]] = []
    questions = BudgetQuestions(lambda wanted, why: told.append(wanted))
    questions.ask(sent.append, 8 * PAGE, force=False)
    first = sent[0]["number"]

    def answers_both(question: dict[str, Any]) -> None:
        questions.answered({"number": first, "refused": "late"})
        questions.answered({"number": question["number"], "refused": None})

    assert questions.ask(answers_both, 16 * PAGE, force=True) == {"refused": None, "wanted_bytes": 16 * PAGE}
    assert told == [8 * PAGE]
