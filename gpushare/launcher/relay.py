"""Reads what the jobs write and passes it on: bytes to their logs, lines to the screen."""

from __future__ import annotations

import os
import selectors
import threading
from typing import Protocol

from gpushare.launcher.logs import Logs


class Screen(Protocol):
    """Where lines go."""

    def job_line(self, name: str, text: str) -> None:
        """A line that a job wrote."""

    def note(self, text: str) -> None:
        """A line of gpushare's own."""


_LONGEST = 64 << 10  # of a line without its end; the log has it all


def _worth_keeping(line: bytes) -> bytes:
    """Of a line that has not ended: its last state, if it is redrawn. A progress bar may never end its line."""
    begin = line.rstrip(b"\r").rfind(b"\r") + 1
    return line[begin:][-_LONGEST:]


class Relay:
    """One thread for all pipes. It ends when every pipe has been closed at the other end."""

    def __init__(self, logs: Logs, screen: Screen) -> None:
        self._logs = logs
        self._screen = screen
        self._selector = selectors.DefaultSelector()
        self._partial: dict[tuple[str, str], bytes] = {}
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)

    def add(self, descriptor: int, name: str, stream: str) -> None:
        """Relay the read end of a pipe. Call before `start`."""
        self._selector.register(descriptor, selectors.EVENT_READ, (name, stream))

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def finish(self, timeout_s: float) -> None:
        """Wait until all is read; a process that was left behind with a pipe open is not waited for."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while self._selector.get_map():
            for key, _ in self._selector.select():
                data = os.read(key.fd, 1 << 16)
                if data:
                    name, stream = key.data
                    self._take(name, stream, data)
                else:
                    self._selector.unregister(key.fd)
                    os.close(key.fd)
                    self._end(*key.data)

    def _take(self, name: str, stream: str, data: bytes) -> None:
        if wrong := self._logs.write(name, stream, data):
            self._screen.note(wrong)
        lines = (self._partial.pop((name, stream), b"") + data).split(b"\n")
        if rest := _worth_keeping(lines[-1]):
            self._partial[name, stream] = rest
        for line in lines[:-1]:
            self._show(name, line)

    def _end(self, name: str, stream: str) -> None:
        if rest := self._partial.pop((name, stream), b""):
            self._show(name, rest)

    def _show(self, name: str, line: bytes) -> None:
        # Of a progress bar that redraws its line, the last state is what a person would see.
        text = line.rstrip(b"\r").rsplit(b"\r", 1)[-1].decode("utf-8", errors="replace")
        self._screen.job_line(name, text)
