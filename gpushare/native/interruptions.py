"""What is raised in a thread from another one: see `shim/src/interruption.h`. Each function is one call of C, in which
nothing else of Python's runs."""

from __future__ import annotations

from gpushare.native.library import quick


def interrupt(account: int, thread_ident: int, kind: type[BaseException]) -> None:
    """Raise `kind` in that thread, the main one of the job (0: any), in place of what was sent last: at its next
    bytecode, at once if it is in a wait of the interpreter, or in place of the error of a wait that `shim.cancel`
    ends."""
    quick["gs_interrupt"](account, thread_ident, kind)


def hold_back(thread_ident: int) -> None:
    """The thread is in one more section in which nothing is raised in it by `interrupt`."""
    quick["gs_hold_back"](thread_ident)


def held_sections(thread_ident: int) -> int:
    """In how many of them it is."""
    sections: int = quick["gs_held_sections"](thread_ident)
    return sections


def let_come(thread_ident: int, sections: int) -> None:
    """It is in so many only from now on; in none: the last thing that was held back comes."""
    quick["gs_let_come"](thread_ident, sections)


def hold_back_alone(thread_ident: int) -> None:
    """In a forked child: of all threads only this one is left, and nothing of what was held back is for it."""
    quick["gs_hold_back_alone"](thread_ident)


def interrupt_came(account: int) -> None:
    """What was sent last has been raised."""
    quick["gs_interrupt_came"](account)
