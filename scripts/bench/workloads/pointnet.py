"""PointNet for classification: shared layers over the points of a cloud, two learned transforms, a maximum; Adam."""

from itertools import pairwise

import torch
from arguments import parse
from torch import nn
from torch.nn import functional as F

CLASSES = 40
args = parse(__doc__, batch_size=64, width=64, points=1024)


def shared(*widths: int) -> nn.Sequential:
    """The same layers for each point."""
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Conv1d(before, after, 1), nn.BatchNorm1d(after), nn.ReLU()]
    return nn.Sequential(*layers)


class Transform(nn.Module):
    """A matrix for each cloud, the identity at first."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.points = shared(size, width, 2 * width, 16 * width)
        self.cloud = nn.Sequential(
            nn.Linear(16 * width, 8 * width), nn.ReLU(), nn.Linear(8 * width, 4 * width), nn.ReLU()
        )
        self.matrix = nn.Linear(4 * width, size * size)
        nn.init.zeros_(self.matrix.weight)
        with torch.no_grad():
            self.matrix.bias.copy_(torch.eye(size).flatten())
        self.size = size

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.matrix(self.cloud(self.points(x).amax(2))).view(-1, self.size, self.size)


class PointNet(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.place, self.feature = Transform(3, width), Transform(width, width)
        self.low, self.high = shared(3, width, width), shared(width, width, 2 * width, 16 * width)
        self.head = nn.Sequential(
            nn.Linear(16 * width, 8 * width),
            nn.BatchNorm1d(8 * width),
            nn.ReLU(),
            nn.Linear(8 * width, 4 * width),
            nn.Dropout(0.3),
            nn.BatchNorm1d(4 * width),
            nn.ReLU(),
            nn.Linear(4 * width, CLASSES),
        )

    def forward(self, clouds: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits, and how far the features' transforms are from being orthogonal."""
        low = self.low(self.place(clouds) @ clouds)
        matrix = self.feature(low)
        apart = matrix @ matrix.mT - torch.eye(matrix.shape[1], device=matrix.device)
        return self.head(self.high(matrix @ low).amax(2)), apart.square().mean()


model = PointNet(args.width).to(args.device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(args.steps):
    clouds = torch.rand(args.batch_size, 3, args.points, device=args.device)
    logits, apart = model(clouds)
    loss = F.cross_entropy(logits, torch.randint(CLASSES, (args.batch_size,)).to(args.device)) + 0.001 * apart
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item()!r}")
