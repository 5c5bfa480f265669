"""cuDNN searches for the fastest convolution of each new shape (`cudnn.benchmark`), which waits for the whole device
again and again. Which one it finds differs from run to run, so only whether the result is right is told.
"""

import sys

import torch
from options import parse, scaled, tell
from torch import nn

args = parse(__doc__)
torch.use_deterministic_algorithms(False)
torch.backends.cudnn.benchmark = True
layer = nn.Conv2d(16, 16, 3, padding=1).to(args.device)
for step in range(args.steps):
    side = 16 + 2 * step
    images = torch.randn(scaled(args, 64), 16, side, side, device=args.device)
    found = layer(images)
    found.square().mean().backward()
    torch.backends.cudnn.benchmark = False
    expected = layer(images)
    torch.backends.cudnn.benchmark = True
    tell(f"{side} right", bool(torch.allclose(found, expected, rtol=1e-2, atol=1e-2)))
peak = torch.cuda.max_memory_reserved() if args.device.startswith("cuda") else 0
print(f"peak_bytes {peak}", file=sys.stderr)
