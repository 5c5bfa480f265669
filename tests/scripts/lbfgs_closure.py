"""LBFGS: the optimizer calls forward and backward many times."""

import torch

torch.manual_seed(8)
w = torch.nn.Parameter(torch.zeros(5))
a, b = torch.randn(20, 5), torch.randn(20)
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
