"""Learning-rate schedules, one after another, and a warning that the order is wrong."""

import os

import torch

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.manual_seed(12)
model = torch.nn.Linear(4, 4).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=3)
cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)
schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, [warmup, cosine], [3])
for step in range(8):
    loss = model(torch.randn(8, 4, device=device)).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    print(step, schedule.get_last_lr(), loss.item())
other = torch.optim.SGD(model.parameters(), lr=1.0)
wrong = torch.optim.lr_scheduler.StepLR(other, 1)
wrong.step()
other.step()
print(wrong.get_last_lr())
