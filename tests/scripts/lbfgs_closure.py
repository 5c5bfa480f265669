"""LBFGS: the optimizer calls forward and backward many times."""

import os

import torch

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.manual_seed(8)
w = torch.nn.Parameter(torch.zeros(5, device=device))
a, b = torch.randn(20, 5, device=device), torch.randn(20, device=device)
optimizer = torch.optim.LBFGS([w], lr=0.5, max_iter=8)
calls = 0


def closure():
    global calls
    calls += 1
    optimizer.zero_grad()
    loss = (a @ w - b).square().sum()
    loss.backward()
    return loss


for step in range(4):
    print(step, optimizer.step(closure).item(), calls)
