"""Options with argparse; wrong ones end with code 2."""

import argparse
import os
import sys

import torch

parser = argparse.ArgumentParser(description="trains a little")
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--device", default=os.environ.get("DEVICE", "cpu"))
parser.add_argument("--steps", type=int, default=5)
args = parser.parse_args()
print(args, sys.argv[1:], parser.prog)
torch.manual_seed(2)
w = torch.zeros(3, device=args.device, requires_grad=True)
for step in range(args.steps):
    loss = (w - torch.tensor([1.0, 2.0, 3.0], device=args.device)).square().sum()
    loss.backward()
    with torch.no_grad():
        w -= args.lr * w.grad
        w.grad = None
    print(step, loss.item())
parser.parse_args(["--no-such-option"])
