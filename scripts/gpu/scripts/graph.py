"""A step of training is captured as a CUDA graph and replayed, between captures and steps that are not."""

import torch
from options import end, parse, scaled, tell
from torch import nn

args = parse(__doc__)
width = scaled(args, 1024)
model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)).to(args.device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
source = torch.zeros(scaled(args, 4096), width, device=args.device)


def step_once() -> torch.Tensor:
    optimizer.zero_grad(set_to_none=False)
    loss = (model(source) - source).square().mean()
    loss.backward()
    optimizer.step()
    return loss


warming = torch.cuda.Stream()
warming.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(warming):
    for _ in range(3):
        source.normal_()
        step_once()
torch.cuda.current_stream().wait_stream(warming)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    captured = step_once()
for step in range(args.steps):
    source.normal_()
    graph.replay()
    if step % 5 == 4:
        tell(f"loss {step}", captured.item())
noise = torch.cuda.CUDAGraph()
with torch.cuda.graph(noise):
    drawn = torch.rand(1000, device=args.device)
for _ in range(3):
    noise.replay()
    tell("drawn", drawn.sum().item())
end(args, model)
