"""Autocast to bfloat16."""

import os

import torch

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.manual_seed(6)
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 1)).to(device)
optimizer = torch.optim.Adam(model.parameters())
for step in range(6):
    x = torch.randn(64, 32, device=device)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        out = model(x)
        loss = (out - x.mean(1, keepdim=True)).float().pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, out.dtype, loss.item())
