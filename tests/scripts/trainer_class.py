"""A Trainer class, and a guard at the end."""

import os

import torch

device = torch.device(os.environ.get("DEVICE", "cpu"))


class Trainer:
    def __init__(self, model, optimizer, loss):
        self.model, self.optimizer, self.loss = model, optimizer, loss
        self.history = []

    def fit(self, batches, epochs):
        for epoch in range(epochs):
            total = 0.0
            for x, y in batches:
                total += self.step(x, y)
            self.history.append(total)
            print(f"epoch {epoch}: {total!r}")

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = self.loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main():
    torch.manual_seed(1)
    model = torch.nn.Linear(8, 1).to(device)
    batches = [(torch.randn(16, 8, device=device), torch.randn(16, 1, device=device)) for _ in range(4)]
    Trainer(model, torch.optim.Adam(model.parameters()), torch.nn.MSELoss()).fit(batches, 3)


if __name__ == "__main__":
    main()
