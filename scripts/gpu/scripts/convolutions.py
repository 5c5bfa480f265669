"""A convolutional network with dropout and batch normalisation; pinned batches are copied without blocking."""

import torch
from options import end, parse, scaled, tell
from torch import nn

args = parse(__doc__)
pinned = args.device.startswith("cuda")


def block(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, padding=1),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
        nn.Dropout2d(0.1),
    )


model = nn.Sequential(
    block(3, 64), block(64, 64), block(64, 128, 2), nn.Flatten(), nn.Linear(128 * 32 * 32, 10)
).to(args.device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
for step in range(args.steps):
    images = torch.randn(scaled(args, 128), 3, 64, 64)
    if pinned:
        images = images.pin_memory()
    images = images.to(args.device, non_blocking=True)
    target = torch.randint(10, (len(images),), device=args.device)
    loss = nn.functional.cross_entropy(model(images), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 4:
        tell(f"loss {step}", loss.item())
end(args, model)
