"""ResNet-110 for small pictures (He et al., 2015, section 4.2): three stages of 18 basic blocks, 32 x 32; SGD with
momentum."""

import torch
from arguments import parse
from torch import nn
from torch.nn import functional as F

CLASSES = 10
args = parse(__doc__, batch_size=128, width=16, depth=18, side=32)


class Block(nn.Module):
    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(before, width, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.stride, self.more = stride, width - before

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.norm2(self.second(F.relu(self.norm1(self.first(x)))))
        x = x[:, :, :: self.stride, :: self.stride]
        return F.relu(hidden + F.pad(x, (0, 0, 0, 0, 0, self.more)))  # a shortcut without parameters


def resnet(width: int, depth: int) -> nn.Sequential:
    layers: list[nn.Module] = [
        nn.Conv2d(3, width, 3, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
    ]
    before = width
    for stage in range(3):
        for index in range(depth):
            layers.append(Block(before, width << stage, 2 if stage and not index else 1))
            before = width << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, CLASSES))


model = resnet(args.width, args.depth).to(args.device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
for step in range(args.steps):
    images = torch.randn(args.batch_size, 3, args.side, args.side, device=args.device)
    labels = torch.randint(CLASSES, (args.batch_size,)).to(args.device)
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item()!r}")
