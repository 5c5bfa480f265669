"""Jobs as the host has them, each with a thread that does what it is given, for programs that are run as `tensors.py`
is. To be imported before torch.
"""

import ctypes
import importlib
import os
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpushare.native import library, shim

MIB = 1 << 20
U64 = ctypes.c_uint64

fake = ctypes.CDLL(None)
fake.fake_cuda_reset(U64(int(os.environ.get("GPUSHARE_TEST_SEED", "11"))))
library.load(Path(sys.argv[1]))
library.library_path = lambda: Path(sys.argv[1])
shim.start(budget_bytes=256 * MIB, page_bytes=2 * MIB, region_bytes=32 * MIB, policy="unmanaged", gpu=0)

# Only now, as in the host: torch finds the shim when it is loaded.
torch: Any = importlib.import_module("torch")
# What is to stand before functions of torch that the bridge calls.
for path in filter(None, os.environ.get("GPUSHARE_TEST_STANDS_BEFORE", "").split(":")):
    ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
context: Any = importlib.import_module("gpushare.isolation.context")
cuda, generators, torch_threads = (
    importlib.import_module(f"gpushare.framework.{name}") for name in ("cuda", "generators", "threads")
)
imports: Any = importlib.import_module("gpushare.isolation.imports")

PARTS: tuple[Any, ...] = tuple(
    importlib.import_module(f"gpushare.framework.cuda_{name}")
    for name in (
        "streams",
        "generators",
        "captures",
        "replays",
        "graph_trees",
        "workspaces",
        "dropout",
        "run_ahead",
    )
)
HOSTS_DEFAULT = 0

cuda.start(print)
imports.install()
generators.install()
for part in PARTS:
    part.install()
Body = Callable[[Any], None]


class Job:
    """A job whose thread does what it is given, and lives as long as the job."""

    def __init__(self) -> None:
        self.account = shim.job_begin(0)
        self._work: list[Body | None] = []
        self._turn = threading.Semaphore(0)
        self._done = threading.Semaphore(0)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self.does(lambda job: None)

    def does(self, body: Body | None) -> None:
        self._work.append(body)
        self._turn.release()
        self._done.acquire()
        if self._error:
            raise self._error

    def _run(self) -> None:
        job = context.JobContext(
            name=f"job{self.account}",
            account=self.account,
            argv=[],
            path=[],
            main=types.ModuleType("__main__"),
            stdin=sys.stdin,
            stdout=sys.stdout,
            stderr=sys.stderr,
            environ={},
            note=print,
            generator=generators.new(),
        )
        try:
            torch_threads.enter(job)
            for part in PARTS:
                part.enter(job)
        except BaseException as error:
            self._error = error
            self._done.release()
            return
        while True:
            self._turn.acquire()
            body = self._work.pop(0)
            try:
                if body is None:
                    break
                body(job)
            except BaseException as error:
                self._error = error
            self._done.release()
        for part in reversed(PARTS):
            part.leave(job)
        torch_threads.leave()
        shim.job_end(self.account)
        assert torch.cuda.current_stream().cuda_stream == HOSTS_DEFAULT
        self._done.release()
