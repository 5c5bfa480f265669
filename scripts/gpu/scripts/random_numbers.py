"""What a script may ask of the device's random numbers, between steps that draw from them."""

import torch
from options import digest, end, parse, scaled, tell
from torch import nn
from torch.utils.checkpoint import checkpoint

args = parse(__doc__, steps=10)
width = scaled(args, 1024)
model = nn.Sequential(nn.Linear(width, width), nn.Dropout(0.5), nn.Linear(width, width)).to(args.device)
attention = nn.MultiheadAttention(width - width % 2, 2, dropout=0.3, batch_first=True).to(args.device)
cuda = args.device.startswith("cuda")
tell("initial seed", torch.cuda.initial_seed() if cuda else torch.initial_seed())
for step in range(args.steps):
    inputs = torch.rand(scaled(args, 256), width, device=args.device)
    loss = checkpoint(model, inputs, use_reentrant=False).square().mean()
    loss.backward()
    sequence = torch.randn(scaled(args, 16), 32, attention.embed_dim, device=args.device)
    seen = attention(sequence, sequence, sequence, need_weights=False)[0]
    seen.mean().backward()
    with torch.random.fork_rng():
        torch.manual_seed(step)
        tell(f"forked {step}", digest([torch.randn(1000, device=args.device)]))
    kept = torch.cuda.get_rng_state() if cuda else torch.get_rng_state()
    drawn = digest([torch.bernoulli(torch.full((1000,), 0.5, device=args.device))])
    (torch.cuda.set_rng_state if cuda else torch.set_rng_state)(kept)
    again = digest([torch.bernoulli(torch.full((1000,), 0.5, device=args.device))])
    tell(f"step {step}", (loss.item(), drawn, drawn == again, digest([seen])))
end(args, model)
