"""A two-stage detector after Faster R-CNN with a feature pyramid, on pictures of another size each step.

Anchors, proposals, boxes and the regions taken from the features differ in number from step to step.
Boxes are (left, top, right, bottom) in pixels.
"""

import torch
from arguments import parse
from torch import nn
from torch.nn import functional as F

CLASSES, STRIDES, POOLED = 10, (4, 8, 16, 32), 7
SIDES = (160, 192, 224, 256, 288, 320)
BEFORE_SUPPRESSION, PER_IMAGE, OVERLAP = 200, 64, 0.7
args = parse(__doc__, batch_size=12, width=32)


def block(before: int, after: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(before, after, 3, stride, padding=1, bias=False),
        nn.BatchNorm2d(after),
        nn.ReLU(inplace=True),
        nn.Conv2d(after, after, 3, padding=1, bias=False),
        nn.BatchNorm2d(after),
        nn.ReLU(inplace=True),
    )


def overlaps(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Intersection over union of boxes (n, 4) and (m, 4), as (n, m)."""
    extent = (torch.minimum(a[:, None, 2:], b[:, 2:]) - torch.maximum(a[:, None, :2], b[:, :2])).clamp(min=0)
    shared = extent.prod(dim=2)
    area_a, area_b = ((x[:, 2:] - x[:, :2]).prod(dim=1) for x in (a, b))
    return shared / (area_a[:, None] + area_b - shared).clamp(min=1e-6)


def suppress(boxes: torch.Tensor) -> torch.Tensor:
    """Drop boxes, given best first, that overlap too much with a better one that stays."""
    overlapping = (overlaps(boxes, boxes) > OVERLAP).cpu()
    keep = torch.ones(len(boxes), dtype=torch.bool)
    for index in range(len(boxes)):
        if keep[index]:
            keep[index + 1 :] &= ~overlapping[index, index + 1 :]
    return boxes[keep.to(boxes.device)][:PER_IMAGE]


def encode(boxes: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    size, target_size = boxes[:, 2:] - boxes[:, :2], targets[:, 2:] - targets[:, :2]
    shift = (targets[:, :2] + targets[:, 2:] - boxes[:, :2] - boxes[:, 2:]) / (2 * size)
    return torch.cat([shift, (target_size / size).log()], dim=1)


def decode(boxes: torch.Tensor, deltas: torch.Tensor, side: int) -> torch.Tensor:
    size = boxes[:, 2:] - boxes[:, :2]
    center = boxes[:, :2] + size / 2 + deltas[:, :2] * size
    half = size * deltas[:, 2:].clamp(max=2).exp() / 2
    return torch.cat([center - half, center + half], dim=1).clamp(0, side)


def match(boxes: torch.Tensor, truth: torch.Tensor, threshold: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Which boxes lie on an object, and for each of these on which."""
    best, which = overlaps(boxes, truth).max(dim=1)
    positive = (best > threshold).nonzero().squeeze(1)
    return positive, which[positive]


def sample_boxes(features: torch.Tensor, boxes: torch.Tensor, side: int) -> torch.Tensor:
    """Sample `POOLED` points each way from features (1, channels, h, w) in each box: (n, channels, p, p)."""
    places = (torch.arange(POOLED, device=boxes.device) + 0.5) / POOLED
    across = boxes[:, 0, None] + places * (boxes[:, 2] - boxes[:, 0])[:, None]
    along = boxes[:, 1, None] + places * (boxes[:, 3] - boxes[:, 1])[:, None]
    grid = torch.stack(
        [across[:, None, :].expand(-1, POOLED, -1), along[:, :, None].expand(-1, -1, POOLED)], dim=3
    )
    sampled = F.grid_sample(features, (2 * grid / side - 1).flatten(0, 1)[None], align_corners=False)
    return sampled[0].unflatten(1, (-1, POOLED)).transpose(0, 1)


def make_anchors(side: int) -> torch.Tensor:
    """A square box of six strides around every place of every level."""
    levels = []
    for stride in STRIDES:
        places = (torch.arange(side // stride) + 0.5) * stride
        along, across = torch.meshgrid(places, places, indexing="ij")
        center = torch.stack([across, along], dim=2).flatten(0, 1)
        levels.append(torch.cat([center - 3 * stride, center + 3 * stride], dim=1))
    return torch.cat(levels)


@torch.no_grad()
def select(proposed: torch.Tensor, anchors: torch.Tensor, side: int) -> torch.Tensor:
    """The best boxes of one image that are not empty and do not repeat each other."""
    _, best = proposed[:, 0].topk(min(BEFORE_SUPPRESSION, len(anchors)))
    boxes = decode(anchors[best], proposed[best, 1:], side)
    return suppress(boxes[(boxes[:, 2:] - boxes[:, :2]).amin(dim=1) > 2])


def proposal_loss(proposed: torch.Tensor, anchors: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    positive, which = match(anchors, truth, 0.4)
    wanted = torch.zeros_like(proposed[:, 0]).index_fill(0, positive, 1)
    loss = F.binary_cross_entropy_with_logits(proposed[:, 0], wanted)
    deltas = encode(anchors[positive], truth[which])
    return loss + F.smooth_l1_loss(proposed[positive, 1:], deltas, reduction="sum") / (1 + len(positive))


def gather_regions(
    levels: list[torch.Tensor], boxes: torch.Tensor, side: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """What the boxes of one image show, each on the level that suits its size; and the boxes in that order."""
    size = (boxes[:, 2:] - boxes[:, :2]).prod(dim=1).sqrt()
    suited = (size / 24).log2().floor().clamp(0, len(levels) - 1)
    rows = [(suited == number).nonzero().squeeze(1) for number in range(len(levels))]
    regions = [
        sample_boxes(level, boxes[chosen], side)
        for level, chosen in zip(levels, rows, strict=True)
        if len(chosen)
    ]
    return torch.cat(regions), boxes[torch.cat(rows)]


class Detector(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        widths = [width << level for level in range(len(STRIDES))]
        self.stem = block(3, width, 2)
        self.stages = nn.ModuleList(
            block(before, after, 2) for before, after in zip([width, *widths], widths, strict=False)
        )
        pyramid = 2 * width
        self.lateral = nn.ModuleList(nn.Conv2d(width, pyramid, 1) for width in widths)
        self.smooth = nn.ModuleList(nn.Conv2d(pyramid, pyramid, 3, padding=1) for _ in widths)
        self.proposal = nn.Sequential(nn.Conv2d(pyramid, pyramid, 3, padding=1), nn.ReLU(inplace=True))
        self.proposal_out = nn.Conv2d(pyramid, 5, 1)
        self.head = nn.Sequential(
            nn.Flatten(), nn.Linear(pyramid * POOLED**2, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU()
        )
        self.classify = nn.Linear(512, CLASSES + 1)
        self.regress = nn.Linear(512, 4)

    def pyramid(self, images: torch.Tensor) -> list[torch.Tensor]:
        x, levels = self.stem(images), []
        for stage, lateral in zip(self.stages, self.lateral, strict=True):
            x = stage(x)
            levels.append(lateral(x))
        for level in range(len(levels) - 2, -1, -1):
            levels[level] = levels[level] + F.interpolate(levels[level + 1], scale_factor=2.0)
        return [smooth(level) for smooth, level in zip(self.smooth, levels, strict=True)]

    def propose(self, levels: list[torch.Tensor]) -> torch.Tensor:
        """Score and box deltas at every place of every level: (images, anchors, 5)."""
        found = [self.proposal_out(self.proposal(level)).flatten(2) for level in levels]
        return torch.cat(found, dim=2).transpose(1, 2)

    def forward(
        self, images: torch.Tensor, truths: tuple[torch.Tensor, ...], kinds: tuple[torch.Tensor, ...]
    ) -> torch.Tensor:
        """The sum of the losses of both stages, given the boxes in each image and what they hold."""
        side = images.shape[-1]
        levels = self.pyramid(images)
        proposed = self.propose(levels)
        anchors = make_anchors(side).to(images.device)
        losses, regions, targets, deltas = [], [], [], []
        for index, (truth, kind) in enumerate(zip(truths, kinds, strict=True)):
            losses.append(proposal_loss(proposed[index], anchors, truth) / len(truths))
            boxes = torch.cat([select(proposed[index], anchors, side), truth])
            region, boxes = gather_regions([level[index : index + 1] for level in levels], boxes, side)
            regions.append(region)
            positive, which = match(boxes, truth, 0.5)
            targets.append(torch.zeros(len(boxes), dtype=torch.long, device=boxes.device))
            targets[-1][positive] = kind[which] + 1
            deltas.append(encode(boxes[positive], truth[which]))
        hidden, target = self.head(torch.cat(regions)), torch.cat(targets)
        losses.append(F.cross_entropy(self.classify(hidden), target))
        losses.append(F.smooth_l1_loss(self.regress(hidden[target > 0]), torch.cat(deltas)))
        return torch.stack(losses).sum()


def draw_objects(side: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Boxes of one image, between one and twelve, and the class of each."""
    count = int(torch.randint(1, 13, ()))
    size = side * (0.08 + 0.4 * torch.rand(count, 2))
    corner = torch.rand(count, 2) * (side - size)
    boxes = torch.cat([corner, corner + size], dim=1)
    return boxes.to(args.device), torch.randint(CLASSES, (count,)).to(args.device)


model = Detector(args.width).to(args.device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
for step in range(args.steps):
    side = SIDES[int(torch.randint(len(SIDES), ()))]
    images = torch.randn(args.batch_size, 3, side, side).to(args.device)
    truths, kinds = zip(*[draw_objects(side) for _ in range(args.batch_size)], strict=True)
    loss = model(images, truths, kinds)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 10.0)
    optimizer.step()
    print(f"step {step} loss {loss.item()!r}")
