"""A network that torch.compile compiles in its mode reduce-overhead: forward and backward are replayed as CUDA graphs,
and an evaluation is recorded behind them, in memory that has to be set back first.
"""

import torch
from options import end, parse, scaled, tell
from torch import nn

args = parse(__doc__, steps=12)
width = scaled(args, 1024)
model = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, 10)).to(
    args.device
)
run = torch.compile(model, mode="reduce-overhead")
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)


def batch() -> torch.Tensor:
    return torch.randn(scaled(args, 4096), width, device=args.device)


for step in range(args.steps):
    loss = run(batch()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    tell(f"loss {step}", loss.item())
    if step % 3 == 2:
        with torch.no_grad():
            tell(f"evaluated {step}", sum(run(batch()).mean().item() for _ in range(3)))
end(args, model)
