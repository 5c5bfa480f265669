"""Leaves with os._exit from a function: no exit handlers."""

import atexit
import os

import torch

atexit.register(print, "never seen")
print(torch.arange(4).sum().item(), flush=True)
os._exit(7)
