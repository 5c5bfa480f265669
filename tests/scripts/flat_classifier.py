"""Flat, without functions."""

import torch
import torch.nn as nn

torch.manual_seed(0)
x = torch.randn(256, 20)
y = (x[:, 0] > 0).long()
model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
for epoch in range(8):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    print("epoch", epoch, loss.item())
