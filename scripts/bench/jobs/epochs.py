"""A perceptron trained in epochs, each with DataLoader workers of its own and a validation behind it.

So its iterations are of several kinds: the first one of an epoch waits for workers to start, the last one's batch is
smaller, and a validation comes between two.
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--batches", type=int, default=20, help="in an epoch; the last one is half as large")
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--width", type=int, default=256)
parser.add_argument("--workers", type=int, default=2)
parser.add_argument("--persistent", action="store_true", help="workers stay from one epoch to the next")
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)

SIZES = args.width, args.width, args.width
examples = args.batches * args.batch - args.batch // 2
images, classes = torch.randn(examples, args.width), torch.randint(10, (examples,))
keep = args.persistent and args.workers > 0
training = DataLoader(
    TensorDataset(images, classes),
    batch_size=args.batch,
    shuffle=True,
    num_workers=args.workers,
    persistent_workers=keep,
)
validation = DataLoader(
    TensorDataset(images[: 4 * args.batch], classes[: 4 * args.batch]), batch_size=4 * args.batch
)
layers = [part for size in SIZES for part in (nn.Linear(args.width, size), nn.ReLU())]
model = nn.Sequential(*layers, nn.Linear(args.width, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(args.epochs):
    for image, label in training:
        loss = nn.functional.cross_entropy(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        right = sum(int((model(image).argmax(1) == label).sum()) for image, label in validation)
    print(f"epoch {epoch} loss {loss.item()!r} right {right}", flush=True)
