"""A picture that is drawn anew in its place, and finds that place when the terminal has become narrower."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderResult
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType, Segment

_REFRESH_HZ = 5


class Picture(Live):
    """Rich goes up by the rows that it has drawn. Terminals wrap these where they become narrower, to more rows, and
    the first ones would stay as fragments.
    """

    def __init__(self, render: Callable[[], RenderableType], console: Console) -> None:
        self._row_widths: list[int] = []  # as last drawn
        super().__init__(
            get_renderable=lambda: _Rows(render(), self._row_widths),
            console=console,
            refresh_per_second=_REFRESH_HZ,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """To the picture's beginning, what is printed above it, and the picture."""
        back, *others = super().process_renderables(renderables)
        if not self.console.is_interactive:
            return [back, *others]
        up = ((ControlType.CURSOR_UP, 1), (ControlType.ERASE_IN_LINE, 2))
        return [back, Control(*up * wrapped_rows(self._row_widths, self.console.width)), *others]


class _Rows:
    """Notes how wide each row is. Blanks at a row's end, which would be wrapped too, are left out."""

    def __init__(self, content: RenderableType, widths: list[int]) -> None:
        self._content, self._widths = content, widths

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = [_without_blanks(row) for row in console.render_lines(self._content, options, pad=False)]
        self._widths[:] = [Segment.get_line_length(row) for row in rows]
        for row in rows:
            yield from row
            yield Segment.line()


def wrapped_rows(widths: Sequence[int], terminal_width: int) -> int:
    """How many rows more they take where the terminal has become so narrow."""
    if "XTERM_VERSION" in os.environ or os.environ.get("TERM") == "linux":
        return 0  # these cut off what is too wide: the rows above are others'
    return sum(max(0, width - 1) // max(1, terminal_width) for width in widths)


def _without_blanks(row: list[Segment]) -> list[Segment]:
    end = len(row)
    while end and not row[end - 1].text.strip():
        end -= 1
    return row[:end]
