"""Stops when the validation loss no longer falls; ends with sys.exit in a function."""

import sys

import torch

torch.manual_seed(13)
model = torch.nn.Linear(5, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.2)
x, y = torch.randn(40, 5), torch.randn(40, 1)
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
