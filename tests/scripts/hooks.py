"""Forward, backward and tensor hooks, and features taken out of a layer."""

import os

import torch

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.manual_seed(24)
model = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).to(device)
features = {}
model[0].register_forward_hook(lambda m, i, o: features.update(first=o.detach().mean().item()))
model[2].register_full_backward_hook(lambda m, gi, go: print("grad in", gi[0].abs().sum().item()))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer.register_step_post_hook(lambda *_: print("stepped"))
for step in range(4):
    x = torch.randn(6, 5, device=device, requires_grad=True)
    x.register_hook(lambda grad: grad * 2)
    loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, features, x.grad.sum().item(), loss.item())
