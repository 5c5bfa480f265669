"""Replaces functions and methods of torch and numpy by its own, as research code does."""

import functools
import io
import os

import numpy as np
import torch
import torch.nn.functional as F

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.manual_seed(61)
torch.load = functools.partial(torch.load, weights_only=False)
np.float_of_a_script = float
dropout = F.dropout
linear_forward = torch.nn.Linear.forward
calls = []


def halving_dropout(x, p=0.5, training=True, inplace=False):
    calls.append(p)
    return x * (1 - p) if training else dropout(x, p, training, inplace)


def loud_forward(self, x):
    calls.append(type(self).__name__)
    return linear_forward(self, x)


F.dropout = halving_dropout
torch.nn.Linear.forward = loud_forward
torch.nn.Module.count = property(lambda self: sum(p.numel() for p in self.parameters()))

model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Dropout(0.25), torch.nn.Linear(7, 1)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(10):
    loss = model(torch.randn(6, 5, device=device)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item(), len(calls))
attention = torch.nn.MultiheadAttention(4, 2, dropout=0.5)  # calls dropout within torch.nn.functional
print(attention(*[torch.ones(3, 1, 4)] * 3)[0].sum().item(), len(calls))
file = io.BytesIO()
torch.save({"model": model}, file)
file.seek(0)
print(type(torch.load(file)["model"]).__name__, model.count, np.float_of_a_script("2.5"))
model.eval()
print(model(torch.ones(1, 5, device=device)).item(), calls[-3:])
