"""Ends with a traceback through two frames, and an exit handler."""

import atexit

import torch

atexit.register(print, "cleaned up")


def inner(x):
    return x @ torch.randn(3, 3)


print("before")
inner(torch.randn(2, 2))
print("never")
