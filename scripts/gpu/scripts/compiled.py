"""A network that torch.compile compiles, in its default mode."""

import torch
from options import end, parse, scaled, tell
from torch import nn

args = parse(__doc__, steps=10)
width = scaled(args, 1024)
model = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, 10)).to(
    args.device
)
run = torch.compile(model)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(args.steps):
    inputs = torch.randn(scaled(args, 4096), width, device=args.device)
    loss = run(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    tell(f"loss {step}", loss.item())
end(args, model)
