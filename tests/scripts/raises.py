"""Ends with a traceback through two frames, and an exit handler."""

import atexit
import os

import torch

device = torch.device(os.environ.get("DEVICE", "cpu"))

atexit.register(print, "cleaned up")


def inner(x):
    return x @ torch.randn(3, 3, device=device)


print("before")
inner(torch.randn(2, 2, device=device))
print("never")
