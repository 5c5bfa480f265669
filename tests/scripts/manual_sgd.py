"""No module and no optimizer."""

import os

import torch

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.manual_seed(22)
w1 = torch.randn(10, 20, device=device, requires_grad=True)
w2 = torch.randn(20, 1, device=device, requires_grad=True)
for step in range(10):
    x = torch.randn(32, 10, device=device)
    loss = (torch.relu(x @ w1) @ w2 - x.sum(1, keepdim=True)).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        for w in (w1, w2):
            w -= 1e-3 * w.grad
            w.grad.zero_()
    print(step, loss.item())
