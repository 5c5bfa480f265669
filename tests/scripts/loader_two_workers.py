"""Two workers that augment with random numbers of three kinds."""

import os
import random

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

device = torch.device(os.environ.get("DEVICE", "cpu"))


class Noisy(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        noise = torch.rand(()) + random.random() + np.random.rand()
        return torch.full((4,), float(index)) + noise, get_worker_info().id


def seeded(worker):
    seed = torch.initial_seed() % 2**32
    random.seed(seed)
    np.random.seed(seed)


if __name__ == "__main__":
    torch.manual_seed(20)
    model = torch.nn.Linear(4, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for epoch in range(2):
        for x, worker in DataLoader(
            Noisy(), batch_size=6, shuffle=True, num_workers=2, worker_init_fn=seeded
        ):
            loss = model(x.to(device)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(epoch, worker.tolist(), loss.item())
