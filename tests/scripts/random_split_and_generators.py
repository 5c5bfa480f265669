"""`random_split` with its default generator, and torch's default generator handed on by name."""

import copy

import torch
from torch import default_generator
from torch.utils.data import DataLoader, RandomSampler, TensorDataset, random_split

torch.manual_seed(34)
data = TensorDataset(torch.arange(40.0).reshape(20, 2))
train, test = random_split(data, [0.8, 0.2])
print(train.indices, test.indices)
torch.manual_seed(34)
print(random_split(data, [16, 4], generator=torch.default_generator)[1].indices)
print(random_split(range(9), [6, 3], torch.Generator().manual_seed(1))[0].indices)
print(torch.rand(3, generator=torch.default_generator), torch.rand(3))
print(torch.randperm(5, generator=torch.random.default_generator))
print(torch.empty(2).normal_(generator=default_generator), torch.initial_seed())
state = torch.default_generator.get_state()
first = torch.randn(3)
torch.default_generator.set_state(state)
print(torch.equal(first, torch.randn(3)), torch.default_generator.initial_seed())
print(torch.rand(2, generator=copy.deepcopy(default_generator)), torch.rand(2))
torch.random.default_generator.manual_seed(5)
print(torch.rand(2), torch.get_rng_state().sum(), torch.default_generator is default_generator)
for batch in DataLoader(train, 4, sampler=RandomSampler(train, generator=torch.default_generator)):
    print(batch[0].sum().item())
print(type(torch.default_generator), torch.default_generator.device)
