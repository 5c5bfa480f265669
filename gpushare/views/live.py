"""The live view: the pool against the budget over time, and a row per job. Job output scrolls above."""

from __future__ import annotations

import contextlib
import re
import time
from collections import deque
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from gpushare.telemetry.reader import JobView, Telemetry
from gpushare.units import format_bytes

_BARS = " ▁▂▃▄▅▆▇█"
_REFRESH_HZ = 5
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
        self._live: Live | None = None

    def start(self, telemetry: Telemetry) -> None:
        """Begin to draw."""
        self._telemetry = telemetry
        self._live = Live(
            get_renderable=self.render,
            console=self._console,
            refresh_per_second=_REFRESH_HZ,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    def stop(self) -> None:
        """Leave the last picture where it is."""
        if self._live:
            with contextlib.suppress(OSError):
                self._live.stop()
                if not self._console.is_terminal:
                    self._console.line()  # rich ends the last picture with a line's end on a terminal only

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
        return Group(self._pool_lines(held), self._table(self._telemetry))

    def _print(self, text: Text) -> None:
        with contextlib.suppress(OSError):  # a closed terminal must not end the jobs
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

    def _table(self, telemetry: Telemetry) -> Table:
        table = Table(box=None, pad_edge=False, expand=True, header_style="dim")
        table.add_column("job", max_width=16, no_wrap=True)
        table.add_column("phase", no_wrap=True, min_width=12)
        for heading in ("held", "it", "it/s", "shift"):
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_column("last line", no_wrap=True, ratio=1, overflow="ellipsis")
        for index, name in enumerate(self._names):
            account = self._accounts.get(index, index + 1)  # the host gives them in the jobs' order
            view = telemetry.job(account)
            table.add_row(name, *self._cells(index, view), Text(self._last_line.get(name, "")))
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
