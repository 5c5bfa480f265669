"""The layers of a network are made callables that replay graphs, forwards and backwards (`make_graphed_callables`)."""

import torch
from options import end, parse, scaled, tell
from torch import nn

args = parse(__doc__, steps=1000)
width, rows = scaled(args, 1024), scaled(args, 2048)
enter = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width)).to(args.device)
leave = nn.Sequential(nn.Dropout(0.2), nn.Linear(width, width)).to(args.device)
both = nn.ModuleList([enter, leave])
optimizer = torch.optim.SGD(both.parameters(), lr=1e-3, momentum=0.9)
sample = torch.randn(rows, width, device=args.device)
of_hidden = torch.randn(rows, width, device=args.device, requires_grad=True)
enter, leave = torch.cuda.make_graphed_callables((enter, leave), ((sample,), (of_hidden,)))
for step in range(args.steps):
    source = torch.randn(rows, width, device=args.device)
    loss = (leave(enter(source)) - source).square().mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        tell(f"loss {step}", loss.item())
end(args, both)
