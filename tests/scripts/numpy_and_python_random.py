"""Seeds everything, as most scripts do, and draws from everything."""

import os
import random

import numpy as np
import torch

device = torch.device(os.environ.get("DEVICE", "cpu"))


def seed_everything(seed):
    random.seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


seed_everything(33)
for step in range(3):
    rows = np.random.permutation(10)[:4]
    random.shuffle(order := list(range(6)))
    print(
        rows.tolist(),
        order,
        random.choice("abc"),
        np.random.normal(),
        torch.rand(1, device=device).item(),
        random.sample(range(50), 3),
    )
state = np.random.get_state()[1][:2].tolist(), random.getstate()[1][:2], torch.get_rng_state()[:4].tolist()
print(state, np.random.RandomState(1).rand(), np.random.default_rng(1).random(), random.Random(1).random())
np.random.shuffle(values := np.arange(5))
print(
    values,
    np.random.choice(5, 2, replace=False),
    np.random.randint(0, 9, 3),
    random.gauss(0, 1),
    random.betavariate(1, 2),
)
