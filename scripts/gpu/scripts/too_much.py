"""Asks for more memory than there is, and goes on."""

import torch
from options import end, parse, scaled, tell
from torch import nn

args = parse(__doc__, steps=10)
width = scaled(args, 2048)
model = nn.Linear(width, width).to(args.device)
for step in range(args.steps):
    loss = model(torch.randn(scaled(args, 4096), width, device=args.device)).square().mean()
    loss.backward()
    try:
        torch.empty(1 << 42, dtype=torch.uint8, device=args.device)
    except torch.OutOfMemoryError:
        tell("refused", step)
    tell(f"loss {step}", loss.item())
end(args, model)
