"""A small residual network with pooling and weight decay."""

import os

import torch
from torch import nn
from torch.nn import functional as F

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.manual_seed(42)
torch.backends.cudnn.deterministic = True


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a, self.b = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x):
        return F.relu(x + self.norm(self.b(F.relu(self.a(x)))))


model = nn.Sequential(
    nn.Conv2d(1, 8, 3),
    Block(8),
    nn.MaxPool2d(2),
    Block(8),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(8, 10),
).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4, nesterov=True)
for step in range(5):
    images = torch.randn(16, 1, 14 + step, 14 + step).to(device)
    loss = F.cross_entropy(model(images), torch.randint(10, (16,)).to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
