"""A shuffled DataLoader in the main process."""

import os

import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.manual_seed(19)
data = TensorDataset(torch.randn(50, 4), torch.randn(50, 1))
model = torch.nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for index, (x, y) in enumerate(DataLoader(data, batch_size=16, shuffle=True)):
        x, y = x.to(device), y.to(device)
        loss = (model(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(epoch, index, x.sum().item(), loss.item())
