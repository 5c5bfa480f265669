"""Evaluation under no_grad and in eval mode between the epochs."""

import os

import torch

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.manual_seed(17)
model = torch.nn.Sequential(
    torch.nn.Linear(7, 14), torch.nn.BatchNorm1d(14), torch.nn.Dropout(0.2), torch.nn.Linear(14, 3)
).to(device)
optimizer = torch.optim.Adam(model.parameters())
x, y = torch.randn(90, 7, device=device), torch.randint(3, (90,), device=device)
for epoch in range(4):
    model.train()
    for part in torch.randperm(60).split(20):
        loss = torch.nn.functional.cross_entropy(model(x[part]), y[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.inference_mode():
        right = (model(x[60:]).argmax(1) == y[60:]).float().mean()
    print(epoch, loss.item(), right.item())
