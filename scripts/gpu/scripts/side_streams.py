"""Batches are made on a side stream while the last one is learned; events order them, record_stream keeps them."""

import torch
from options import end, parse, scaled, tell
from torch import nn

args = parse(__doc__)
width = scaled(args, 2048)
model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)).to(args.device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
side, main = torch.cuda.Stream(), torch.cuda.current_stream()
assert main == torch.cuda.default_stream()
host = torch.randn(scaled(args, 8192), width).pin_memory()


def prepare() -> tuple[torch.Tensor, torch.cuda.Event]:
    with torch.cuda.stream(side):
        batch = host.to(args.device, non_blocking=True)
        batch = batch * 0.5 + torch.randn_like(batch)
        return batch, side.record_event()


made, ready = prepare()
for step in range(args.steps):
    batch, event = made, ready
    event.wait(main)
    batch.record_stream(main)
    side.wait_stream(main)  # the device's random numbers are drawn in one order
    made, ready = prepare()
    loss = (model(batch) - batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    del batch
    if step % 10 == 9:
        torch.cuda.synchronize()
        tell(f"loss {step}", loss.item())
torch.accelerator.synchronize()
end(args, model)
