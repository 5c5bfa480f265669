"""A job's script that needs no kernel: a model on the CPU learns, and each step takes memory of the GPU."""

import torch

torch.manual_seed(1)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
kept = torch.empty(4 << 20, dtype=torch.uint8, device="cuda")
for _ in range(30):
    taken = [torch.empty(n << 20, dtype=torch.uint8, device="cuda") for n in (20, 10, 40)]
    loss = model(torch.randn(4, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    del taken
    optimizer.step()
print("trained", loss.item())
