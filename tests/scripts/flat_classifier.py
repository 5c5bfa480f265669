"""Flat, without functions."""

import os

import torch
import torch.nn as nn

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.manual_seed(0)
x = torch.randn(256, 20, device=device)
y = (x[:, 0] > 0).long()
model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 2)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
for epoch in range(8):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    print("epoch", epoch, loss.item())
