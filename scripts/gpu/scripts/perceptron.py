"""A network of linear layers with dropout; batches come from the device's own random numbers."""

import torch
from options import end, parse, scaled, tell
from torch import nn

args = parse(__doc__)
width = scaled(args, 2048)
layers: list[nn.Module] = []
for _ in range(6):
    layers += [nn.Linear(width, width), nn.GELU(), nn.Dropout(0.2)]
model = nn.Sequential(*layers, nn.Linear(width, 10)).to(args.device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
for step in range(args.steps):
    inputs = torch.randn(scaled(args, 8192), width, device=args.device)
    target = torch.randint(10, (len(inputs),), device=args.device)
    loss = nn.functional.cross_entropy(model(inputs), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    tell(f"loss {step}", loss.item())
end(args, model)
