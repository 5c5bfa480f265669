"""A deep plain convolutional network on handwritten digits: nearly all its memory is activations.

At the defaults one iteration peaks above 512 MiB, rises through the forward pass and falls through the
backward pass. `examples/digits_cnn.py`, with batch norm and wider layers, stays high for longer.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=60)
parser.add_argument("--batch-size", type=int, default=128)
parser.add_argument("--depth", type=int, default=66)
parser.add_argument("--width", type=int, default=16)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)

digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
labels = torch.tensor(digits.target)
layers: list[nn.Module] = [nn.Conv2d(1, args.width, 3, padding=1), nn.ReLU()]
for _ in range(args.depth):
    layers += [nn.Conv2d(args.width, args.width, 3, padding=1), nn.ReLU()]
model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(args.width, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for step in range(args.steps):
    chosen = torch.randint(len(images), (args.batch_size,))
    x = F.interpolate(images[chosen], size=32, mode="bilinear")
    loss = F.cross_entropy(model(x), labels[chosen])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item()!r}")
