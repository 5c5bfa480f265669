"""Processes from a fork server."""

import multiprocessing

import torch


def loss_of(seed):
    torch.manual_seed(seed)
    return torch.nn.functional.l1_loss(torch.randn(9), torch.randn(9)).item()


def main():
    context = multiprocessing.get_context("forkserver")
    with context.Pool(2) as pool:
        print(pool.map(loss_of, range(4)))
    queue = context.SimpleQueue()
    process = context.Process(target=queue.put, args=({"a": 1},))
    process.start()
    print(queue.get())
    process.join()
    print(process.exitcode, multiprocessing.active_children())


if __name__ == "__main__":
    main()
