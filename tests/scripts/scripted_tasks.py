"""Scripted functions with tasks of their own, in double precision by default."""

import time

import torch

torch.set_default_dtype(torch.float64)


@torch.jit.script
def piece(x: torch.Tensor, scale: float):
    return (x * scale + torch.ones([x.size(0)])).cumsum(0)


@torch.jit.script
def pieces(x: torch.Tensor):
    tasks = [torch.jit.fork(piece, x, float(i)) for i in range(3)]
    return [torch.jit.wait(task) for task in tasks]


seen = []
for step in range(3):
    x = torch.arange(4, dtype=torch.float32) * step
    results = pieces(x)
    for result in results:
        print(step, result.dtype, result.tolist())
    seen += [x, *results]

# A thread of torch's that still has one of them when Python ends takes the process down, under plain python as well:
# it is the last to release it, which takes the interpreter's lock.
while any(tensor._use_count() > 1 for tensor in seen):
    time.sleep(0.001)
