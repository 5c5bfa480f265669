"""torch.func: per-sample gradients, a Hessian, functional_call."""

import os

import torch
from torch.func import functional_call, grad, hessian, jvp, vmap

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.manual_seed(16)
model = torch.nn.Linear(3, 1).to(device)
params = {k: v.detach() for k, v in model.named_parameters()}


def loss(params, x, y):
    return (functional_call(model, params, (x,)) - y).pow(2).mean()


for step in range(5):
    x, y = torch.randn(10, 3, device=device), torch.randn(10, 1, device=device)
    per_sample = vmap(grad(loss), in_dims=(None, 0, 0))(params, x, y)
    params = {k: v - 0.1 * per_sample[k].mean(0) for k, v in params.items()}
    print(step, loss(params, x, y).item(), per_sample["weight"].shape)
print(hessian(lambda t: t.pow(3).sum())(torch.arange(3.0, device=device)))
print(jvp(torch.sin, (torch.tensor(0.3),), (torch.tensor(1.0),)))
