"""torch.compile with its own compiler, if the machine has one."""

import os

import torch

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.manual_seed(62)


@torch.compile
def gelu_like(x):
    return x * torch.sigmoid(1.702 * x) + x.mean()


w = torch.randn(64, device=device, requires_grad=True)
for step in range(3):
    loss = gelu_like(w * torch.randn(64, device=device)).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        w -= 0.01 * w.grad
        w.grad = None
    print(step, loss.item())
