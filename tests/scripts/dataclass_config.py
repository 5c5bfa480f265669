"""A configuration as a dataclass with type hints, resolved at run time."""

import dataclasses
import json
import os
import typing

import torch


@dataclasses.dataclass(frozen=True)
class Optim:
    lr: float = 0.01
    betas: tuple[float, float] = (0.9, 0.99)


@dataclasses.dataclass
class Config:
    width: int = 16
    optim: Optim = dataclasses.field(default_factory=Optim)
    seed: "int" = 3
    device: str = os.environ.get("DEVICE", "cpu")


config = Config()
print(json.dumps(dataclasses.asdict(config)), typing.get_type_hints(Config), Config.__module__)
torch.manual_seed(config.seed)
model = torch.nn.Sequential(
    torch.nn.Linear(4, config.width), torch.nn.Tanh(), torch.nn.Linear(config.width, 1)
).to(config.device)
optimizer = torch.optim.AdamW(model.parameters(), **dataclasses.asdict(config.optim))
x = torch.randn(64, 4, device=config.device)
for step in range(6):
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()
    print(step, loss.item())
