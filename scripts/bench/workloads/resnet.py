"""ResNet-50 on pictures of 112 x 112: bottlenecks, batch norm, SGD with momentum."""

import torch
from arguments import parse
from torch import nn
from torch.nn import functional as F

CLASSES = 1000
args = parse(__doc__, batch_size=24, width=48, side=112)


class Bottleneck(nn.Module):
    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        after = 4 * width
        self.reduce = nn.Conv2d(before, width, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.spatial = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.expand = nn.Conv2d(width, after, 1, bias=False)
        self.norm3 = nn.BatchNorm2d(after)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or before != after:
            self.shortcut = nn.Sequential(
                nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.relu(self.norm1(self.reduce(x)))
        hidden = self.relu(self.norm2(self.spatial(hidden)))
        return self.relu(self.norm3(self.expand(hidden)) + self.shortcut(x))


def resnet(width: int, depths: tuple[int, ...]) -> nn.Sequential:
    layers: list[nn.Module] = [
        nn.Conv2d(3, width, 7, 2, padding=3, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, padding=1),
    ]
    before = width
    for stage, depth in enumerate(depths):
        for index in range(depth):
            layers.append(Bottleneck(before, width << stage, 2 if stage and not index else 1))
            before = 4 * (width << stage)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, CLASSES))


model = resnet(args.width, (3, 4, 6, 3)).to(args.device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.9, weight_decay=1e-4)
for step in range(args.steps):
    images = torch.randn(args.batch_size, 3, args.side, args.side, device=args.device)
    labels = torch.randint(CLASSES, (args.batch_size,)).to(args.device)
    loss = F.cross_entropy(model(images), labels, label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item()!r}")
