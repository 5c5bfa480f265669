"""Progress of a long calculation, on a terminal and elsewhere."""

import io

from rich.console import Console

from gpushare.views.progress import Progress


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_elsewhere_than_on_a_terminal_there_is_a_line_now_and_then() -> None:
    clock, out = Clock(), io.StringIO()
    with Progress(Console(file=out), clock) as progress:
        for i in range(11):
            progress.tell(f"step {i}")
            clock.now_s += 0.5
    assert out.getvalue() == "gpushare: step 4\ngpushare: step 8\n"


def test_what_is_over_soon_says_nothing() -> None:
    out = io.StringIO()
    with Progress(Console(file=out), Clock()) as progress:
        progress.tell("all of it")
    assert out.getvalue() == ""


def test_on_a_terminal_it_is_shown_and_taken_away() -> None:
    out = io.StringIO()
    with Progress(Console(file=out, force_terminal=True, width=60), Clock()) as progress:
        progress.tell("simulating under zico")
    assert "\x1b" in out.getvalue() and "gpushare:" not in out.getvalue()
