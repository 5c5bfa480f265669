"""A convolutional network fed by two DataLoader workers that are started anew again and again.

The pictures change their size with each restart, so oneDNN makes new kernels while the other job forks.
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--restarts", type=int, default=500)
parser.add_argument("--workers", type=int, default=2)
args = parser.parse_args()
torch.manual_seed(0)
torch.multiprocessing.set_start_method("fork")  # which is not the default from Python 3.14 on


class Pictures(Dataset[torch.Tensor]):
    def __init__(self, side: int) -> None:
        self.side = side

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.randn(3, self.side, self.side)


model = nn.Sequential(
    nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 1)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for restart in range(args.restarts):
    for batch in DataLoader(Pictures(12 + restart % 29), batch_size=4, num_workers=args.workers):
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"restart {restart} loss {loss.item()!r}")
