"""Stops when the validation loss no longer falls; ends with sys.exit in a function."""

import os
import sys

import torch

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.manual_seed(13)
model = torch.nn.Linear(5, 1).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.2)
x, y = torch.randn(40, 5).to(device), torch.randn(40, 1).to(device)
best, patience = float("inf"), 0


def finish(code):
    print("stopped with", best)
    sys.exit(code)


for step in range(200):
    loss = (model(x[:30]) - y[:30]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        validation = (model(x[30:]) - y[30:]).pow(2).mean().item()
    best, patience = (validation, 0) if validation < best else (best, patience + 1)
    print(step, validation)
    if patience == 3:
        finish(5)
