"""Reads its configuration by executing a file into its globals, and looks at its own source."""

import inspect
import os

import torch

open("config.py", "w").write(f"lr = 0.1\nsteps = 3\ndevice = {os.environ.get('DEVICE', 'cpu')!r}\n")
exec(open("config.py").read())


def train():
    torch.manual_seed(43)
    w = torch.ones(3, device=device, requires_grad=True)
    for step in range(steps):
        loss = w.pow(2).sum()
        loss.backward()
        with torch.no_grad():
            w -= lr * w.grad
            w.grad = None
        print(step, loss.item())


train()
print(inspect.getsource(train).splitlines()[0], inspect.getmodule(train).__name__, __name__, __doc__)
