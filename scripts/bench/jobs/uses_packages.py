"""A small training that imports well-known packages, as most of a sweep do; says how long that took, and what the
process has needed of memory by its end."""

import argparse
import importlib
import sys
import time

import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--packages", default="", help="modules, with commas between")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
begin = time.monotonic()
for name in filter(None, args.packages.split(",")):
    module, _, attribute = name.partition(":")
    found = importlib.import_module(module)
    if attribute:
        getattr(found, attribute)  # transformers imports what is asked for
print(f"imports {time.monotonic() - begin:.3f} s")
torch.manual_seed(args.seed)
model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(4)])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(args.steps):
    loss = model(torch.randn(64, 256)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item()!r}")
with open("/proc/self/status") as lines:
    peak = next(line for line in lines if line.startswith("VmHWM"))
print(f"peak {int(peak.split()[1])} KiB, {len(sys.modules)} modules")
