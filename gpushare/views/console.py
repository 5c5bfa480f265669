"""Where tables and the live view are shown."""

from __future__ import annotations

import sys

import rich.console


class Console(rich.console.Console):
    """Wide where it is no terminal, and a closed pipe is left to its user: rich's own ends the program.

    Strings are shown as they are: "[lr=0.1]" or ":1:" in the name of a job is no markup.
    """

    def __init__(self) -> None:
        super().__init__(width=None if sys.stdout.isatty() else 120, markup=False, emoji=False)

    def on_broken_pipe(self) -> None:
        """Called by rich while it handles the error."""
        raise
