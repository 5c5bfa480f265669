"""An exponential moving average of the weights, twice: by hand and with swa_utils."""

import copy
import os

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.manual_seed(11)
model = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.BatchNorm1d(12), torch.nn.Linear(12, 1))
model.to(device)
average = copy.deepcopy(model).requires_grad_(False)
swa = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01)
for step in range(6):
    loss = model(torch.randn(32, 6, device=device)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for kept, new in zip(average.parameters(), model.parameters()):
            kept.lerp_(new, 0.1)
    swa.update_parameters(model)
    print(step, loss.item(), sum(p.sum().item() for p in average.parameters()))
print(sum(p.sum().item() for p in swa.parameters()))
