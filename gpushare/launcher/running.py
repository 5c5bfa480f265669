"""Runs that are under way can be asked: each listens on a Unix socket of its own, named by its process.

The sockets are in a folder that only their user can enter. A question and its answer are a line of JSON each.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gpushare import places
from gpushare.errors import UsageError

_ANSWER_WITHIN_S = 15.0
_LONGEST_QUESTION = 64 << 10
_LONGEST_ADDRESS = 107  # `sockaddr_un`, less the end of a string

Answer = Callable[[dict[str, Any]], dict[str, Any]]


@contextlib.contextmanager
def _address(path: Path) -> Iterator[str]:
    """What names a socket at this path to the system, which takes 107 bytes: a long one by way of its folder."""
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


class Listener:
    """Answers questions in a thread until it is closed. Does nothing where no socket can be had."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._path: Path | None = None
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            path = places.of_mine() / f"{os.getpid()}.sock"
            path.unlink(missing_ok=True)  # of a process that had our number
            with _address(path) as address:
                self._socket.bind(address)
            self._socket.listen()
            self._path = path
        except OSError:
            self._socket.close()
            return
        threading.Thread(target=self._serve, name="listener", daemon=True).start()

    def close(self) -> None:
        """Listen no longer."""
        if self._path:
            self._path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, contextlib.suppress(Exception):  # whatever was asked, the next one is answered
                connection.settimeout(_ANSWER_WITHIN_S)
                question = json.loads(connection.makefile("r", encoding="utf-8").readline(_LONGEST_QUESTION))
                connection.sendall((json.dumps(self._answer(question)) + "\n").encode())


def processes() -> list[int]:
    """Numbers of the runs that are under way; what dead ones left behind is removed."""
    found = []
    try:
        paths = sorted(places.of_mine().glob("*.sock"))
    except OSError:
        return []
    for path in paths:
        if not path.stem.isdigit():
            continue
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(1)
            try:
                with _address(path) as address:
                    probe.connect(address)
                found.append(int(path.stem))
            except ConnectionRefusedError:  # whoever has that number now, it is no run
                path.unlink(missing_ok=True)
            except OSError:
                continue
    return found


def no_run(which: str = "") -> str:
    """What to say where there is none: whose temporary files are elsewhere has its runs there, too."""
    return f"no run {which}of yours is under way, or it was started with another TMPDIR than {tempfile.gettempdir()}"


def ask(process: int, question: dict[str, Any]) -> dict[str, Any]:
    """The answer of a run.

    :raises UsageError: there is no such run, or it does not answer.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_ANSWER_WITHIN_S)
        try:
            with _address(places.of_mine() / f"{process}.sock") as address:
                connection.connect(address)
            connection.sendall((json.dumps(question) + "\n").encode())
            answer: dict[str, Any] = json.loads(connection.makefile("r", encoding="utf-8").readline())
        except (FileNotFoundError, ConnectionRefusedError):
            raise UsageError(no_run(f"{process} ")) from None
        except (OSError, ValueError) as error:
            raise UsageError(f"the run {process} does not answer: {error}") from None
    return answer
