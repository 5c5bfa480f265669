"""Double precision by default: parameters, complex numbers, autograd functions, workers of a data loader."""

import os

import torch
from torch.utils.data import DataLoader, Dataset

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.set_default_dtype(torch.float64)
torch.manual_seed(7)


class Waves(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        phase = torch.arange(6.0) * index / 5
        return torch.fft.fft(torch.cos(phase)).abs(), torch.tensor([index / 16])


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.tensor(0.1)

    @staticmethod
    def backward(ctx, gradient):
        factor = torch.full_like(gradient, 0.1) + torch.zeros(1, device=device) + torch.tensor(1e-17)
        print("backward", factor.dtype, torch.get_default_dtype())
        return gradient * factor


if __name__ == "__main__":
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.LayerNorm(8), torch.nn.Linear(8, 1))
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(2):
        for features, target in DataLoader(Waves(), batch_size=8, num_workers=2):
            loss = (Scaled.apply(model(features.to(device))) - target.to(device)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(epoch, features.dtype, repr(loss.item()))
    print(torch.tensor(1j).dtype, torch.linspace(0, 1, 3).dtype, (torch.arange(3) / 3).tolist())
    torch.set_default_dtype(torch.float32)
    print(torch.ones(1).dtype, model(torch.ones(1, 6, dtype=torch.double, device=device)).dtype)
