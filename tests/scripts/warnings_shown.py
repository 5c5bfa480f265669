"""Warnings: once per place, filtered, turned into errors."""

import warnings

import torch


def deprecated():
    warnings.warn("old", DeprecationWarning, stacklevel=2)


for _ in range(3):
    warnings.warn("again and again")
    deprecated()
warnings.simplefilter("always")
for _ in range(2):
    warnings.warn("always now", RuntimeWarning)
with warnings.catch_warnings(record=True) as caught:
    warnings.warn("kept")
print(len(caught), caught[0].message)
with warnings.catch_warnings():
    warnings.simplefilter("error")
    try:
        torch.nn.functional.mse_loss(torch.zeros(2), torch.zeros(2, 1))
    except UserWarning as warning:
        print(str(warning)[:40])
torch.nn.functional.mse_loss(torch.zeros(2), torch.zeros(2, 1))
