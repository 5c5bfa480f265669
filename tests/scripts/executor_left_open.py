"""An executor that nobody shuts down: its work is finished before the script ends."""

import time
from concurrent.futures import ThreadPoolExecutor

import torch

executor = ThreadPoolExecutor(2)


def late(index):
    time.sleep(0.1)
    print("late", torch.full((2,), float(index)).sum().item(), flush=True)


print(executor.submit(pow, 2, 5).result(), flush=True)
executor.submit(late, 3)
