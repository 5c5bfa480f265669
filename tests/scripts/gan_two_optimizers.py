"""A GAN: two optimizers, two backward passes per step."""

import os

import torch
from torch import nn
from torch.nn import functional as F

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.manual_seed(4)
generator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)).to(device)
critic = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1)).to(device)
g_optimizer = torch.optim.Adam(generator.parameters(), 1e-3, betas=(0.5, 0.9))
c_optimizer = torch.optim.Adam(critic.parameters(), 1e-3, betas=(0.5, 0.9))
for step in range(8):
    real = torch.randn(64, 2, device=device) * 0.5 + 2
    fake = generator(torch.randn(64, 8, device=device))
    c_loss = F.softplus(-critic(real)).mean() + F.softplus(critic(fake.detach())).mean()
    c_optimizer.zero_grad()
    c_loss.backward()
    c_optimizer.step()
    g_loss = F.softplus(-critic(fake)).mean()
    g_optimizer.zero_grad()
    g_loss.backward()
    g_optimizer.step()
    print(step, c_loss.item(), g_loss.item())
