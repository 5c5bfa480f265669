"""GradScaler, with an overflow in the middle whose step is skipped."""

import os

import torch

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.manual_seed(7)
model = torch.nn.Linear(16, 1, device=device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler(device.type, init_scale=256.0, growth_interval=3)
for step in range(8):
    loss = model(torch.randn(32, 16, device=device)).pow(2).mean()
    if step == 3:
        loss = loss * float("inf")
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    print(step, loss.item(), scaler.get_scale(), model.weight.sum().item())
