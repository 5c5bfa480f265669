"""Asks for more than the budget and does not catch what comes: `asks_too_much.py GIBIBYTES`."""

import sys

import torch

print("before", torch.ones(10, device="cuda").sum().item())
torch.empty(int(sys.argv[1]) << 30, dtype=torch.uint8, device="cuda")
print("not reached")
