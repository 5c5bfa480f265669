"""A recurrent network of several layers with dropout between them, cuDNN's own on a GPU."""

import torch
from options import digest, end, parse, scaled, tell
from torch import nn

args = parse(__doc__, steps=20)
width = scaled(args, 256)
model = nn.LSTM(width, width, num_layers=3, dropout=0.4, batch_first=True).to(args.device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(args.steps):
    inputs = torch.randn(scaled(args, 128), 40, width, device=args.device)
    outputs = model(inputs)[0]
    loss = outputs.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    tell(f"step {step}", (loss.item(), digest([outputs])))
end(args, model)
