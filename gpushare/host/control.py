"""The host's end of the control socket: one JSON object a line, both ways."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from typing import Any

from gpushare.isolation import interrupts


class Control:
    """`send` may be called from any thread; `messages` ends when the parent is gone."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._process = os.getpid()
        self._lock = interrupts.whole(threading.Lock())

    def send(self, event: str, **fields: Any) -> None:
        """Tell the parent. Silently nothing if it is gone, since then the host ends anyway, and in a forked child,
        which is none of its jobs, and may have the lock taken for ever."""
        if os.getpid() != self._process:
            return
        line = json.dumps({"event": event, **fields}) + "\n"
        with self._lock:
            try:
                self._socket.sendall(line.encode())
            except OSError:
                return

    def messages(self) -> Iterator[dict[str, Any]]:
        """What the parent says, as it comes."""
        with self._socket.makefile("r", encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)
