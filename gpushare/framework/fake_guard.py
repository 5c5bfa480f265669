"""The stand-in for a GPU's device guard that torch's compiler sets where torch is built for CUDA and there is no GPU.

Torch keeps it in the thread that asks first (`tls_fake_device_guard`, c10/core/impl/DeviceGuardImplInterface.cpp), and
its address for the whole process. Were that a job's thread, whoever compiles after that job has ended would call what
is not there any more. So a thread that stays asks.
"""

from __future__ import annotations

import threading
from typing import Any

import torch

from gpushare.isolation import context, interrupts

_NAME = "_ensureCUDADeviceGuardSet"


class AskedOnce:
    """The function, called once, by a thread that lasts as long as the process does."""

    def __init__(self, ask: Any) -> None:
        self._ask = ask
        self._starting, self._asked = interrupts.whole(threading.Lock()), threading.Event()
        self._thread: threading.Thread | None = None

    def __call__(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = self._started()
        self._asked.wait()

    def _started(self) -> threading.Thread:
        thread = threading.Thread(target=self._run, name="gpushare-fake-guard", daemon=True)
        context.count_shared_import(1)  # what is started meanwhile is the host's
        try:
            thread.start()
        finally:
            context.count_shared_import(-1)
        return thread

    def _run(self) -> None:
        try:
            self._ask()
        finally:
            self._asked.set()
        threading.Event().wait()


def install() -> None:
    """Where torch is built for CUDA; without that it has no such guard."""
    names: Any = torch._C
    if torch.version.cuda is not None and hasattr(names, _NAME):
        setattr(names, _NAME, AskedOnce(getattr(names, _NAME)))


def enter(job: context.JobContext) -> None:
    """Nothing to set up."""


def leave(job: context.JobContext) -> None:
    """Nothing to take down."""
