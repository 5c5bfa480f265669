"""A DCGAN for pictures of 128 x 128: generator and discriminator take turns, each with its own Adam."""

import torch
from arguments import parse
from torch import nn
from torch.nn import functional as F

args = parse(__doc__, batch_size=128, width=16, latent=100)


def generator(latent: int, width: int) -> nn.Sequential:
    layers: list[nn.Module] = [nn.ConvTranspose2d(latent, 16 * width, 4, bias=False)]
    for factor in (16, 8, 4, 2):
        layers += [
            nn.BatchNorm2d(factor * width),
            nn.ReLU(inplace=True),
            nn.ConvTranspose2d(factor * width, factor // 2 * width, 4, 2, padding=1, bias=False),
        ]
    layers += [
        nn.BatchNorm2d(width),
        nn.ReLU(inplace=True),
        nn.ConvTranspose2d(width, 3, 4, 2, padding=1, bias=False),
        nn.Tanh(),
    ]
    return nn.Sequential(*layers)


def discriminator(width: int) -> nn.Sequential:
    layers: list[nn.Module] = [
        nn.Conv2d(3, width, 4, 2, padding=1, bias=False),
        nn.LeakyReLU(0.2, inplace=True),
    ]
    for factor in (1, 2, 4, 8):
        layers += [
            nn.Conv2d(factor * width, 2 * factor * width, 4, 2, padding=1, bias=False),
            nn.BatchNorm2d(2 * factor * width),
            nn.LeakyReLU(0.2, inplace=True),
        ]
    return nn.Sequential(*layers, nn.Conv2d(16 * width, 1, 4, bias=False), nn.Flatten(0))


def initialize(module: nn.Module) -> None:
    if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
        nn.init.normal_(module.weight, 0.0, 0.02)


generate = generator(args.latent, args.width).apply(initialize).to(args.device)
discriminate = discriminator(args.width).apply(initialize).to(args.device)
generator_optimizer = torch.optim.Adam(generate.parameters(), lr=2e-4, betas=(0.5, 0.999))
discriminator_optimizer = torch.optim.Adam(discriminate.parameters(), lr=2e-4, betas=(0.5, 0.999))
ones, zeros = torch.ones(args.batch_size).to(args.device), torch.zeros(args.batch_size).to(args.device)

for step in range(args.steps):
    real = torch.rand(args.batch_size, 3, 128, 128, device=args.device) * 2 - 1
    fake = generate(torch.randn(args.batch_size, args.latent, 1, 1).to(args.device))

    discriminator_optimizer.zero_grad()
    real_loss = F.binary_cross_entropy_with_logits(discriminate(real), ones)
    real_loss.backward()
    fake_loss = F.binary_cross_entropy_with_logits(discriminate(fake.detach()), zeros)
    fake_loss.backward()
    discriminator_optimizer.step()

    generator_optimizer.zero_grad()
    generator_loss = F.binary_cross_entropy_with_logits(discriminate(fake), ones)
    generator_loss.backward()
    generator_optimizer.step()
    print(f"step {step} loss {(real_loss + fake_loss).item()!r} {generator_loss.item()!r}")
