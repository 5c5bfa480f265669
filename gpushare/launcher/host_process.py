"""Starting the host, talking to it, and making sure that nothing of it stays behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

import psutil

from gpushare.native import process

# Not -m: that would look for gpushare, and for everything else, in the user's directory first.
_START = "import sys; sys.path.pop(0); from gpushare.host.entry import main; sys.exit(main(int(sys.argv[1])))"


class HostProcess:
    """The host and all its descendants: a session of their own, so that the terminal's Ctrl-C is ours.

    Must be made in the main thread: the death signal follows the thread that started the process.
    """

    def __init__(self, descriptors: Sequence[int], log: BinaryIO, *, give_stdin: bool) -> None:
        process.set_child_subreaper()
        self._before = set(psutil.Process().children(recursive=True))
        ours, theirs = socket.socketpair()
        self._socket = ours
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, str(theirs.fileno())],
            pass_fds=[theirs.fileno(), *descriptors],
            stdin=None if give_stdin else subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        theirs.close()

    @property
    def pid(self) -> int:
        """Process and group number."""
        return self._process.pid

    def send(self, message: dict[str, Any]) -> None:
        """Tell the host; nothing if it is gone."""
        with contextlib.suppress(OSError):
            self._socket.sendall((json.dumps(message) + "\n").encode())

    def messages(self, until_readable: Callable[[int], None]) -> Iterator[dict[str, Any]]:
        """What the host says, until it is gone; what it said last is left out where it died in the middle of it."""
        said = b""
        while True:
            until_readable(self._socket.fileno())
            try:
                more = self._socket.recv(1 << 16)
            except OSError:
                return
            if not more:
                return
            *lines, said = (said + more).split(b"\n")
            yield from map(json.loads, lines)

    def wait(self) -> int:
        """The host's exit status, negative for a signal."""
        return self._process.wait()

    def kill(self) -> None:
        """End the host at once, with its group."""
        self._send_to_group(signal.SIGKILL)

    def stop(self) -> None:
        """The host and its group do nothing until `go_on`."""
        self._send_to_group(signal.SIGSTOP)

    def go_on(self) -> None:
        """After `stop`."""
        self._send_to_group(signal.SIGCONT)

    def _send_to_group(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def sweep(self) -> None:
        """End what the host left behind; orphans have become our children."""
        self.kill()
        left = self._left_behind()
        for each in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        for each in left:  # parents before their children, which are ours once they are gone
            with contextlib.suppress(ChildProcessError):
                os.waitpid(each.pid, 0)

    def _left_behind(self) -> list[psutil.Process]:
        """Our children that come from the host, and all theirs, each after its parent.

        Whoever started gpushare may have given it children by `exec`, such as the `tee` of a shell script: they were
        there before the host, or are of our session, which nothing of the host can come into.
        """
        left = []
        for child in psutil.Process().children():
            with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
                if child not in self._before and os.getsid(child.pid) != os.getsid(0):
                    left += [child, *child.children(recursive=True)]
        return left
