"""Threads and an executor that compute for the script."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import torch

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.manual_seed(27)
model = torch.nn.Linear(6, 6).to(device)
inputs = [torch.randn(4, 6, device=device) for _ in range(6)]
results = {}


def forward(index):
    with torch.no_grad():
        results[index] = model(inputs[index]).sum().item()
    return threading.current_thread().name


with ThreadPoolExecutor(2) as executor:
    names = sorted(set(executor.map(forward, range(6))))
print(len(names) <= 2, names[0], [results[i] for i in range(6)])
thread = threading.Thread(target=forward, args=(0,))
print(thread.name, threading.main_thread().name, threading.current_thread() is threading.main_thread())
thread.start()
thread.join()
grads = []


def backward():
    loss = model(inputs[1]).pow(2).sum()
    loss.backward()
    grads.append(model.weight.grad.sum().item())


for _ in range(2):
    worker = threading.Thread(target=backward)
    worker.start()
    worker.join()
print(grads, threading.active_count())
