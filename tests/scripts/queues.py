"""Worker processes with queues: one makes batches, the script trains on them."""

import multiprocessing
import os
import sys

import torch

device = torch.device(os.environ.get("DEVICE", "cpu"))


def produce(queue, seed):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(5):
        queue.put(torch.randn(8, 3, generator=generator).tolist())
    queue.put(None)


def main():
    torch.manual_seed(25)
    queue = multiprocessing.Queue()
    worker = multiprocessing.Process(target=produce, args=(queue, 7), name="producer")
    worker.start()
    model = torch.nn.Linear(3, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    while (rows := queue.get()) is not None:
        loss = model(torch.tensor(rows, device=device)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
    worker.join()
    print(worker.name, worker.exitcode, multiprocessing.active_children())
    return 0


if __name__ == "__main__":
    sys.exit(main())
