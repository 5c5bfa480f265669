"""Imports from compiled code: of a shared module they run no Python code, of an own one they find it."""

import ctypes
import sys
from pathlib import Path

import numpy
import torch

Path("own_helper.py").write_text("VALUE = 7\n")
sys.path.insert(0, "")
find = ctypes.pythonapi.PyImport_ImportModule
find.restype = ctypes.py_object
called = []
sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
modules = list(map(find, (b"numpy", b"torch", b"torch.nn", b"ctypes")))
sys.setprofile(None)
print("while looking up:", called, modules[0] is numpy, modules[1] is torch, modules[2] is torch.nn)
own = find(b"own_helper")
print(
    own.VALUE,
    own is sys.modules["own_helper"],
    find(b"__main__") is sys.modules["__main__"],
    find(b"__main__").own.VALUE,
)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    loss = model(torch.tensor([[float(own.VALUE), 1, 2, 3]])).square().mean()
    loss.backward()
    optimizer.step()
print(called == [], torch.isfinite(loss).item())
