"""Saves a checkpoint with the random state, trains on, resumes, and must come to the same."""

import os

import torch

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.manual_seed(14)


def make():
    model = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Dropout(0.5), torch.nn.Linear(6, 1))
    model.to(device)
    return model, torch.optim.Adam(model.parameters())


def train(model, optimizer, steps):
    losses = []
    for _ in range(steps):
        loss = model(torch.randn(12, 6).to(device)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


model, optimizer = make()
print(train(model, optimizer, 3))
os.makedirs("checkpoints", exist_ok=True)
state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()}
torch.save(state, "checkpoints/last.pt")
first = train(model, optimizer, 3)
model, optimizer = make()
state = torch.load("checkpoints/last.pt", map_location=device)
model.load_state_dict(state["model"])
optimizer.load_state_dict(state["optimizer"])
torch.set_rng_state(state["rng"].cpu())
print(first == train(model, optimizer, 3), first)
