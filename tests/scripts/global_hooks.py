"""Hooks on all modules and all optimizers, in compiled code too, and taken off again."""

import os

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_full_backward_hook
from torch.optim.optimizer import register_optimizer_step_pre_hook

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.manual_seed(26)
torch.nn.Linear(3, 3)(torch.ones(1, 3)).sum().backward()
largest = {}


def remember(module, inputs, output):
    largest[type(module).__name__] = output.detach().abs().max().item()


hooks = [
    register_module_forward_hook(remember),
    register_module_full_backward_hook(lambda module, _, grad: print("backward", type(module).__name__)),
    register_optimizer_step_pre_hook(lambda optimizer, *_: print("step of", type(optimizer).__name__)),
]
model = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).to(device)
optimizer = torch.optim.Adam(model.parameters())
for step in range(8):
    if step == 5:
        for hook in hooks:
            hook.remove()
        largest.clear()
    loss = model(torch.randn(6, 5, device=device)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item(), largest)

calls = []
hook = register_module_forward_hook(lambda module, *_: calls.append(type(module).__name__))
compiled = torch.compile(model, backend="eager", fullgraph=True)
for _ in range(2):
    print(compiled(torch.ones(2, 5, device=device)).sum().item(), calls)
hook.remove()
calls.clear()
print(compiled(torch.ones(2, 5, device=device)).sum().item(), calls)
