"""A U-Net: skip connections keep early activations until late; cross entropy and Dice loss, AdamW."""

import torch
from arguments import parse
from torch import nn
from torch.nn import functional as F

CLASSES = 5
args = parse(__doc__, batch_size=8, width=16, side=192)


class Double(nn.Sequential):
    """Two convolutions, each with its norm."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__(
            nn.Conv2d(before, after, 3, padding=1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(inplace=True),
            nn.Conv2d(after, after, 3, padding=1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(inplace=True),
        )


class UNet(nn.Module):
    def __init__(self, width: int, levels: int = 4) -> None:
        super().__init__()
        widths = [width << level for level in range(levels + 1)]
        self.first = Double(3, width)
        self.down = nn.ModuleList(Double(width, 2 * width) for width in widths[:-1])
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * width, width, 2, 2) for width in widths[-2::-1])
        self.merge = nn.ModuleList(Double(2 * width, width) for width in widths[-2::-1])
        self.head = nn.Conv2d(width, CLASSES, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        skips = []
        for down in self.down:
            skips.append(x)
            x = down(F.max_pool2d(x, 2))
        for up, merge in zip(self.up, self.merge, strict=True):
            x = merge(torch.cat([skips.pop(), up(x)], dim=1))
        return self.head(x)


def dice(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    probabilities = logits.softmax(dim=1)
    masks = F.one_hot(labels, CLASSES).movedim(3, 1)
    overlap = (probabilities * masks).sum(dim=(0, 2, 3))
    total = (probabilities + masks).sum(dim=(0, 2, 3))
    return 1 - ((2 * overlap + 1) / (total + 1)).mean()


model = UNet(args.width).to(args.device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
for step in range(args.steps):
    coarse = torch.randn(args.batch_size, CLASSES, 6, 6)
    labels = F.interpolate(coarse, size=args.side, mode="bilinear").argmax(dim=1).to(args.device)
    images = labels[:, None] / CLASSES + 0.3 * torch.randn(args.batch_size, 3, args.side, args.side).to(
        args.device
    )
    logits = model(images)
    loss = F.cross_entropy(logits, labels) + dice(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item()!r}")
