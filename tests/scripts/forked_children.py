"""Children of `os.fork` that end as scripts do: by the end of the script, `sys.exit`, an error."""

import atexit
import os
import sys

import torch

parameter = torch.ones(8, requires_grad=True)
optimizer = torch.optim.SGD([parameter], lr=0.1)


def step() -> float:
    loss = (parameter * parameter).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def result_of(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@atexit.register
def bye() -> None:
    print("bye from", "a child" if os.getpid() != parent else "the parent", flush=True)


parent = os.getpid()
step()
for kind in ("end", "exit", "error", "text"):
    pid = os.fork()
    if pid == 0:
        print("child", kind, parameter.sum().item(), flush=True)
        if kind == "exit":
            sys.exit(5)
        if kind == "error":
            raise ValueError(kind)
        if kind == "text":
            sys.exit("a text")
        break
    print(kind, "ended with", result_of(pid), flush=True)
    print(f"loss {step()!r}", flush=True)
