"""Errors of calls that many scripts make, told with their tracebacks and caught; the last one is not."""

import importlib
import os
import random
import signal
import subprocess
import sys
import threading
import traceback
import warnings

import torch


class Doubled(torch.autograd.Function):
    """Its backward pass says who has called it."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        traceback.print_stack()
        return grad * 2


def closure():
    traceback.print_stack()
    return 1 / 0


weight = torch.ones(2, requires_grad=True)
Doubled.apply(weight).sum().backward()
traceback.print_stack()
print(traceback.format_list(traceback.extract_stack()))

calls = [
    lambda: subprocess.run(["false"], check=True),
    # By its name: given its path, Python 3.13 takes os.posix_spawn, a frame that jobs lack.
    lambda: subprocess.Popen(["no_such_program"]),
    lambda: os.execv("/no/such/program", ["x"]),
    lambda: os.waitpid(999999999, 0),
    lambda: os.kill(os.getpid(), 99),
    lambda: signal.raise_signal(99),
    lambda: os.environ["NO_SUCH_RANK"],
    lambda: os.environ.pop("NO_SUCH_RANK"),
    lambda: os.environb[b"NO_SUCH_RANK"],
    lambda: os.chdir("/no/such"),
    lambda: open("/no/such/file"),
    lambda: importlib.import_module("no_such.module"),
    lambda: random.seed([1, 2]),
    lambda: warnings.warn("x", int, stacklevel=1),
    lambda: sys.path.index("no such"),
    lambda: torch.set_num_threads(-1),
    lambda: torch.manual_seed("x"),
    lambda: torch.set_rng_state(torch.zeros(3)),
    lambda: torch.set_default_dtype(3),
    lambda: torch.use_deterministic_algorithms("x"),
    lambda: torch.load("/no/such/checkpoint"),
    lambda: torch.utils.data.DataLoader([1, 2], num_workers=-1),
    lambda: torch.optim.SGD([weight], lr=0.1).step(closure),
    lambda: weight.sum().backward(torch.ones(3)),
    lambda: input(),
]
for call in calls:
    try:
        call()
    except Exception:
        traceback.print_exc()

thread = threading.Thread(target=torch.set_num_threads, args=(-1,))
thread.start()
thread.join()
torch.set_num_threads(-3)
