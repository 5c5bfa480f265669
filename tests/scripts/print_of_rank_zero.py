"""Replaces print in builtins, as scripts for several processes do; an own module sees it."""

import builtins
import pathlib
import sys

pathlib.Path(__file__).with_name("own_printer.py").write_text(
    "def say(*words):\n    print(*words, force=True)\n"
)
sys.dont_write_bytecode = True
import own_printer

print(type(__builtins__).__name__, __builtins__ is builtins, sys.modules["builtins"] is builtins)
print(type(own_printer.__dict__["__builtins__"]).__name__, sorted(set(globals()) - {"own_printer"}))
builtin_print = builtins.print


def print_of_rank_zero(*words, force=False, **options):
    if force:
        builtin_print("rank 0:", *words, **options)


builtins.print = print_of_rank_zero
builtins.profile = lambda function: function
print("hidden")
print("shown", force=True)
own_printer.say("from a module")


@profile  # noqa: F821 - of builtins, set above
def last():
    print("last", force=True)


last()
