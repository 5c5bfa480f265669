"""Run as `tensors.py` is, with the compiled `recurrent.cpp` before torch's kernels: whose state of cuDNN's dropout
recurrent networks of jobs draw from. Torch keeps the one that was made last, by whomever. Prints `ok` last.
"""

import ctypes
import os
from typing import Any

from job_threads import Job, context, torch

from gpushare.native import bridge

stand_ins = ctypes.CDLL(os.environ["GPUSHARE_TEST_STANDS_BEFORE"])
for name in ("last_made", "last_given"):
    getattr(stand_ins, name).restype = ctypes.c_size_t
LSTM, WIDTH = 2, 4
kept: dict[str, Any] = {}  # what stands for a state, as torch's cache keeps it
states: dict[str, int] = {}  # addresses


def makes(name: str) -> Any:
    def body(_: context.JobContext) -> None:
        before = torch.cuda.memory_allocated()
        kept[name] = torch._cudnn_init_dropout_state(0.5, True, 7, dtype=torch.uint8, device="cuda")
        states[name] = stand_ins.last_made()
        assert torch.cuda.memory_allocated() > before and kept[name].numel() == 0

    return body


def forward(given: str, train: bool = True, dropout: float = 0.5) -> tuple[Any, Any]:
    x = torch.empty(3, 2, WIDTH, device="cuda", requires_grad=True)
    h = torch.empty(1, 2, WIDTH, device="cuda")
    options = (LSTM, WIDTH, 0, 1, False, dropout, train, False, [])
    return x, torch._cudnn_rnn(x, [torch.empty(8, device="cuda")], 1, None, h, h, *options, kept[given])[0]


def draws(given: str, wanted: str) -> Any:
    """The job is given what torch's cache keeps, forward and backward, and draws from the state `wanted`."""

    def body(_: context.JobContext) -> None:
        x, out = forward(given)
        assert stand_ins.last_given() == states[wanted], (given, wanted)
        forward(given, train=False)
        assert stand_ins.last_given() in (0, *(states[name] for name in states if name[0] == wanted[0]))
        torch.autograd.grad(out, x, torch.empty_like(out))
        assert stand_ins.last_given() == states[wanted], (given, wanted)

    return body


def has_made_none(_: context.JobContext) -> None:
    """As after a try that has failed for want of memory: torch asks for none, since it has another job's."""
    forward("second", dropout=0.0)
    assert stand_ins.last_given() == 0
    forward("second")
    states["third"] = stand_ins.last_made()
    assert stand_ins.last_given() == states["third"] not in (states["first"], states["second"])
    forward("first")
    assert stand_ins.last_given() == states["third"]


def copied_by_a_hook(_: context.JobContext) -> None:
    """What `save_on_cpu` brings back is no stand-in any more."""
    kept["copy"] = torch.empty(0, dtype=torch.uint8, device="cuda")
    forward("copy")
    assert stand_ins.last_given() == states["second"]


def leaves(job: context.JobContext) -> None:
    before = torch.cuda.memory_allocated()
    bridge.leave_dropout_state(job.account)
    assert torch.cuda.memory_allocated() < before, "torch's cache still keeps what stands for it"
    for _ in range(2):  # as a later job of this account would, whose own first try has failed
        forward("second")
        made = states.setdefault("again", stand_ins.last_made())
        assert stand_ins.last_given() == made == stand_ins.last_made(), "one is made, once"


first, second, third = Job(), Job(), Job()
first.does(makes("first"))
first.does(draws("first", "first"))
second.does(makes("second"))
first.does(draws("second", "first"))
second.does(draws("second", "second"))
second.does(draws("first", "second"))
third.does(has_made_none)
second.does(copied_by_a_hook)
first.does(makes("first, seeded"))
first.does(draws("second", "first, seeded"))
first.does(draws("first", "first"))
second.does(draws("first, seeded", "second"))
second.does(leaves)
kept.clear()
for each in (first, second, third):
    each.does(None)
print("ok")
