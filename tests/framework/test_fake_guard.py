"""The stand-in for a GPU's device guard is made by a thread that outlasts all jobs."""

import threading

import pytest
import torch

from gpushare.framework import fake_guard
from gpushare.host import parts


def test_one_thread_that_stays_asks_once() -> None:
    askers: list[threading.Thread] = []
    ask = fake_guard.AskedOnce(lambda: askers.append(threading.current_thread()))
    callers = [threading.Thread(target=ask) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    ask()
    assert len(askers) == 1 and askers[0].is_alive() and askers[0] not in callers


def test_who_could_start_no_thread_is_told_and_the_next_one_tries_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[bool] = []
    ask = fake_guard.AskedOnce(lambda: asked.append(True))
    with monkeypatch.context() as no_threads:

        def fail(_: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        no_threads.setattr(threading.Thread, "start", fail)
        with pytest.raises(RuntimeError, match="can't start"):
            ask()
    ask()
    assert asked == [True]


@pytest.mark.parametrize("cuda", [None, "13.0"])
def test_it_is_replaced_in_a_torch_for_cuda(cuda: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fake_guard in parts._PARTS
    asked: list[bool] = []
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(torch._C, "_ensureCUDADeviceGuardSet", lambda: asked.append(True))
    fake_guard.install()
    torch._C._ensureCUDADeviceGuardSet()
    torch._C._ensureCUDADeviceGuardSet()
    assert len(asked) == (2 if cuda is None else 1)
