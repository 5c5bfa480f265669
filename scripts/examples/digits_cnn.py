"""A convolutional network on scikit-learn's handwritten digits, enlarged to 32 x 32."""

import torch
from common import parse
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

args = parse(__doc__, batch_size=64, steps=40, width=32)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
labels = torch.tensor(digits.target)


def block(before: int, after: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU())


width = args.width
model = nn.Sequential(
    block(1, width),
    block(width, width),
    block(width, width),
    nn.MaxPool2d(2),
    block(width, 2 * width),
    block(2 * width, 2 * width),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Dropout(0.1),
    nn.Linear(2 * width, 10),
).to(args.device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for step in range(args.steps):
    chosen = torch.randint(len(images), (args.batch_size,))
    x = F.interpolate(images[chosen].to(args.device), size=32, mode="bilinear")
    loss = F.cross_entropy(model(x), labels[chosen].to(args.device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item()!r}")
