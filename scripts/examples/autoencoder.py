"""A convolutional autoencoder on scikit-learn's handwritten digits, enlarged to 32 x 32."""

import torch
from common import parse
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

args = parse(__doc__, batch_size=64, steps=40, width=32)
images = torch.tensor(load_digits().images, dtype=torch.float32)[:, None] / 16
width = args.width


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.GELU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1),
            nn.GELU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.GELU(),
        )
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1),
            nn.GELU(),
            nn.ConvTranspose2d(width, width, 4, stride=2, padding=1),
            nn.GELU(),
            nn.Conv2d(width, 1, 3, padding=1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.encoder(x))


model = Autoencoder().to(args.device)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for step in range(args.steps):
    chosen = torch.randint(len(images), (args.batch_size,))
    x = F.interpolate(images[chosen].to(args.device), size=32, mode="bilinear")
    noisy = x + 0.1 * torch.randn_like(x)
    loss = F.mse_loss(model(noisy), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item()!r}")
