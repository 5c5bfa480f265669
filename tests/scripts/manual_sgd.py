"""No module and no optimizer."""

import torch

torch.manual_seed(22)
w1 = torch.randn(10, 20, requires_grad=True)
w2 = torch.randn(20, 1, requires_grad=True)
for step in range(10):
    x = torch.randn(32, 10)
    loss = (torch.relu(x @ w1) @ w2 - x.sum(1, keepdim=True)).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        for w in (w1, w2):
            w -= 1e-3 * w.grad
            w.grad.zero_()
    print(step, loss.item())
