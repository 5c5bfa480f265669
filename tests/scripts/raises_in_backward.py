"""An error and warnings whose text names where they come from: all the way through torch's own files."""

import os
import traceback
import warnings

import torch

device = torch.device(os.environ.get("DEVICE", "cpu"))


class Careful(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        for level in range(1, 6):
            warnings.warn(f"from level {level}", stacklevel=level)
        return grad * 2


layer = torch.nn.Linear(3, 1).to(device)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    Careful.apply(layer(torch.ones(2, 3, device=device))).sum().backward()
    optimizer.step()
loss = layer(torch.ones(2, 3, device=device)).pow(2).sum()
loss.backward()
try:
    loss.backward()
except RuntimeError:
    traceback.print_exc()
torch.autograd.backward([loss])
