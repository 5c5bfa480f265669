"""Leaves threads that start threads, and futures that were cancelled; finished ones are not kept."""

import gc
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import torch


class Loading(threading.Thread):
    def __init__(self, batch):
        super().__init__()
        self.batch = batch

    def run(self):
        self.batch.sum()


seen = []
for _ in range(5):
    thread = Loading(torch.ones(8))
    seen.append(weakref.ref(thread))
    thread.start()
    thread.join()
del thread
gc.collect()
print([reference() for reference in seen])

executor = ThreadPoolExecutor(1)
begun = threading.Event()
executor.submit(lambda: (begun.set(), time.sleep(0.2)))
waiting = [executor.submit(print, "never seen") for _ in range(3)]
begun.wait()
executor.shutdown(wait=False, cancel_futures=True)
print([future.cancelled() for future in waiting])


def tick(left):
    print("tick", left)
    if left:
        threading.Timer(0.2, tick, [left - 1]).start()


tick(3)
