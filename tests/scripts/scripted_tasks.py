"""Scripted functions with tasks of their own, in double precision by default."""

import torch

torch.set_default_dtype(torch.float64)


@torch.jit.script
def piece(x: torch.Tensor, scale: float):
    return (x * scale + torch.ones([x.size(0)])).cumsum(0)


@torch.jit.script
def pieces(x: torch.Tensor):
    tasks = [torch.jit.fork(piece, x, float(i)) for i in range(3)]
    return [torch.jit.wait(task) for task in tasks]


for step in range(3):
    for result in pieces(torch.arange(4, dtype=torch.float32) * step):
        print(step, result.dtype, result.tolist())
