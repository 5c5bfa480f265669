"""Lightning Fabric with a mixed precision, which remembers that it goes backward in a name of its module."""

import sys, torch
from lightning.fabric import Fabric

torch.manual_seed(int(sys.argv[1]))
fabric = Fabric(accelerator="cpu", devices=1, precision="bf16-mixed")
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), 0.1))
for step in range(200):
    loss = model(torch.randn(64, 64)).float().pow(2).mean()
    optimizer.zero_grad()
    fabric.backward(loss)
    optimizer.step()
    if step % 20 == 0:
        print(step, loss.item())
