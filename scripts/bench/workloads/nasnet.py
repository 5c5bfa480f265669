"""A network as NASNet's cells are: many small separable convolutions, sums and concatenations; SGD with momentum."""

import torch
from arguments import parse
from torch import nn
from torch.nn import functional as F

CLASSES = 100
args = parse(__doc__, batch_size=64, width=32, depth=4, side=64)


def separable(width: int, kernel: int, stride: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for step in (stride, 1):
        layers += [
            nn.ReLU(),
            nn.Conv2d(width, width, kernel, step, kernel // 2, groups=width, bias=False),
            nn.Conv2d(width, width, 1, bias=False),
            nn.BatchNorm2d(width),
        ]
    return nn.Sequential(*layers)


def fitted(before: int, width: int) -> nn.Sequential:
    return nn.Sequential(nn.ReLU(), nn.Conv2d(before, width, 1, bias=False), nn.BatchNorm2d(width))


class Cell(nn.Module):
    """Five blocks of two branches each, over the outputs of the two cells before."""

    def __init__(self, older: int, newer: int, width: int, stride: int) -> None:
        super().__init__()
        self.older, self.newer = fitted(older, width), fitted(newer, width)
        self.branches = nn.ModuleList(separable(width, kernel, stride) for kernel in (3, 5, 5, 3, 3, 7))
        self.stride = stride

    def shrunk(self, x: torch.Tensor) -> torch.Tensor:
        return F.avg_pool2d(x, 3, self.stride, 1)

    def forward(self, older: torch.Tensor, newer: torch.Tensor) -> torch.Tensor:
        older, newer = self.older(older), self.newer(newer)
        older = F.interpolate(older, newer.shape[2:]) if older.shape != newer.shape else older
        a, b, c, d, e, f = self.branches
        parts = [
            a(newer) + self.shrunk(newer),
            b(older) + a(older),
            self.shrunk(newer) + self.shrunk(older),
            c(older) + d(newer),
            e(newer) + f(older),
        ]
        return torch.cat(parts, 1)


class Network(nn.Module):
    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width))
        cells: list[nn.Module] = []
        older = newer = width
        for stage in range(3):
            for index in range(depth):
                stride = 2 if stage and not index else 1
                cells.append(Cell(older, newer, width << stage, stride))
                older, newer = newer, 5 * (width << stage)
        self.cells = nn.ModuleList(cells)
        self.head = nn.Linear(newer, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        older = newer = self.stem(x)
        for cell in self.cells:
            older, newer = newer, cell(older, newer)
        return self.head(F.dropout(F.relu(newer).mean((2, 3)), 0.5))


model = Network(args.width, args.depth).to(args.device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
for step in range(args.steps):
    pictures = torch.randn(args.batch_size, 3, args.side, args.side, device=args.device)
    loss = F.cross_entropy(model(pictures), torch.randint(CLASSES, (args.batch_size,)).to(args.device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item()!r}")
