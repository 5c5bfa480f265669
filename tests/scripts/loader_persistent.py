"""Persistent workers over epochs, and an iterable dataset that shards itself."""

import os

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

device = torch.device(os.environ.get("DEVICE", "cpu"))


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        for index in range(info.id, 12, info.num_workers):
            yield torch.randn(3) + index


def main():
    torch.manual_seed(21)
    loader = DataLoader(Stream(), batch_size=3, num_workers=2, persistent_workers=True, prefetch_factor=2)
    model = torch.nn.Linear(3, 1).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(3):
        for x in loader:
            loss = model(x.to(device, non_blocking=True)).abs().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(epoch, loss.item())


if __name__ == "__main__":
    main()
