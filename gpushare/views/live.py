"""The live view: the pool against the budget over time, and a row per job. Job output scrolls above."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from gpushare.telemetry.reader import JobView, Telemetry
from gpushare.units import format_bytes
from gpushare.views.names import shortened
from gpushare.views.picture import Picture

_BARS = " ▁▂▃▄▅▆▇█"
_LEAST_NAME, _OTHERS = 16, 64  # columns: of names at least; of the other figures, and some of the last line
_RATE_OVER_S = 3.0
# What moves the cursor or colours text (ECMA-48): CSI, OSC and the short ones; what is left of one that was cut.
_SEQUENCES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])?|\x9b[0-?]*[ -/]*[@-~]"
)


class LiveScreen:
    """Follows a run on a terminal. Reads memory only: the jobs don't notice."""

    def __init__(
        self, names: Sequence[str], budget_bytes: int, console: Console, device: str = "cpu"
    ) -> None:
        self._names, self._budget_bytes, self._console = list(names), budget_bytes, console
        self._where = "" if device == "cpu" else f", {device}"
        self._accounts: dict[int, int] = {}
        self._ended: dict[int, str] = {}
        self._last_line: dict[str, str] = {}
        self._pool: deque[int] = deque(maxlen=400)
        self._iterations: dict[int, deque[tuple[float, int]]] = {}
        self._telemetry: Telemetry | None = None
        self._live: Picture | None = None
        # What is printed brings the picture with it: not in the middle of its end.
        self._printing = threading.RLock()
        self._whole = not console.is_terminal  # all rows are shown: nothing is drawn over

    def start(self, telemetry: Telemetry) -> None:
        """Begin to draw."""
        self._telemetry = telemetry
        self._draw()

    def _draw(self) -> None:
        self._live = Picture(self.render, self._console)
        self._live.start()

    def stop(self) -> None:
        """Leave the last picture where it is."""
        if self._live:
            self._whole = True
            with self._printing, contextlib.suppress(OSError):
                self._live.stop()
                if not self._console.is_terminal:
                    self._console.line()  # rich ends the last picture with a line's end on a terminal only

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """While it is entered others write to the terminal; then the picture begins anew below that."""
        if self._live is None or not self._live.is_started:
            yield
            return
        with self._printing, contextlib.suppress(OSError):
            self._live.stop()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                self._draw()

    def job_line(self, name: str, text: str) -> None:
        """A job's line scrolls above the picture, without what would move the cursor out of it."""
        shown = _SEQUENCES.sub("", text)
        if text and not shown:
            return  # it only moved the cursor, as nested progress bars do
        self._last_line[name] = shown
        self._print(Text(f"{name} | {shown}"))

    def note(self, text: str) -> None:
        """A line of gpushare's own."""
        self._print(Text(f"gpushare: {text}", style="yellow"))

    def job_started(self, index: int, account: int) -> None:
        """A job has its account."""
        self._accounts[index] = account

    def job_ended(self, index: int, status: str) -> None:
        """A job is over."""
        self._ended[index] = status

    def render(self) -> RenderableType:
        """The picture, as of now."""
        if self._telemetry is None:
            return Text("starting")
        pool = self._telemetry.pool()
        held, self._budget_bytes = pool.held_bytes, pool.budget_bytes or self._budget_bytes
        self._pool.append(held)
        shown = self._shown()
        lines: list[RenderableType] = [self._pool_lines(held), self._table(self._telemetry, shown)]
        if len(shown) < len(self._names):
            lines.append(self._unshown(shown))
        return Group(*lines)

    def _shown(self) -> list[int]:
        """Of as many jobs as there are rows for, beside those of the pool, of headings and of how many more there are;
        who has ended makes room."""
        every = list(range(len(self._names)))
        if self._whole or len(every) <= self._console.height - 2:
            return every
        first = sorted(every, key=lambda index: index in self._ended)
        return sorted(first[: max(1, self._console.height - 3)])

    def _unshown(self, shown: Sequence[int]) -> Text:
        rest = [index for index in range(len(self._names)) if index not in shown]
        running = sum(index in self._accounts and index not in self._ended for index in rest)
        return Text(f"and {len(rest)} more, {running} of them running", style="dim", no_wrap=True)

    def _print(self, text: Text) -> None:
        with self._printing, contextlib.suppress(OSError):  # a closed terminal must not end the jobs
            self._console.print(text, soft_wrap=True)

    def _pool_lines(self, held_bytes: int) -> Text:
        width = max(10, self._console.width - 40)
        history = list(self._pool)[-width:]
        bars = "".join(_BARS[round(min(1.0, h / self._budget_bytes) * 8)] for h in history)
        figures = f"{format_bytes(held_bytes)} of {format_bytes(self._budget_bytes)}{self._where}"
        line = Text("pool ", style="bold", no_wrap=True)
        line.append(f"|{bars:<{width}}| ", style="cyan")
        line.append(figures, style="not bold")
        return line

    def _table(self, telemetry: Telemetry, shown: Sequence[int]) -> Table:
        room = max(_LEAST_NAME, self._console.width - _OTHERS)
        table = Table(box=None, pad_edge=False, expand=True, header_style="dim")
        table.add_column("job", min_width=min(room, max(map(cell_len, self._names))), no_wrap=True)
        table.add_column("phase", no_wrap=True, min_width=12)
        for heading in ("held", "it", "it/s", "shift"):
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_column("last line", no_wrap=True, ratio=1, overflow="ellipsis")
        for index in shown:
            name = self._names[index]
            account = self._accounts.get(index, index + 1)  # the host gives them in the jobs' order
            view = telemetry.job(account)
            last = Text(self._last_line.get(name, ""))
            table.add_row(shortened(name, room), *self._cells(index, view), last)
        return table

    def _cells(self, index: int, view: JobView) -> tuple[str, str, str, str, str]:
        phase = self._ended.get(index, view.phase)
        if index not in self._accounts:
            return (phase, "-", "-", "-", "-")
        shift = view.mean_shift_s
        return (
            phase,
            format_bytes(view.held_bytes),
            str(view.iterations),
            f"{self._rate(index, view.iterations):.1f}",
            "-" if shift is None else f"{shift * 1000:.0f} ms",
        )

    def _rate(self, index: int, iterations: int) -> float:
        """Iterations per second over the last few seconds."""
        now = time.monotonic()
        seen = self._iterations.setdefault(index, deque())
        seen.append((now, iterations))
        while now - seen[0][0] > _RATE_OVER_S and len(seen) > 2:
            seen.popleft()
        (then, before), span = seen[0], now - seen[0][0]
        return (iterations - before) / span if span > 0 and then < now else 0.0
