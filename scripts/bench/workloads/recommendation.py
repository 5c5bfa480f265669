"""Recommendation as DLRM does it (Naumov et al. 2019): embedding bags of varying lengths, two MLPs, bmm.

The large tables have sparse gradients and SparseAdam, everything else dense ones and Adagrad.
"""

from itertools import pairwise

import torch
from arguments import parse
from torch import nn
from torch.nn import functional as F

DENSE, SPARSE_FROM, LONGEST_BAG = 13, 50_000, 24
ROWS = (250_000, 150_000, 100_000, 60_000, 40_000, 20_000, 10_000, 4_000, 1_000, 300, 100, 20)
args = parse(__doc__, batch_size=8192, width=48)
Bag = tuple[torch.Tensor, torch.Tensor]  # the chosen rows of all samples, where each sample begins


def mlp(*widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers)


class Recommender(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(
            nn.EmbeddingBag(rows, width, mode="sum", sparse=rows >= SPARSE_FROM) for rows in ROWS
        )
        for table in self.tables:
            nn.init.uniform_(table.weight, -(table.num_embeddings**-0.5), table.num_embeddings**-0.5)
        self.bottom = mlp(DENSE, 256, 128, width)
        features = len(ROWS) + 1
        self.register_buffer("pairs", torch.tril_indices(features, features, -1))
        self.top = nn.Sequential(mlp(width + features * (features - 1) // 2, 512, 256), nn.Linear(256, 1))

    def forward(self, dense: torch.Tensor, bags: list[Bag]) -> torch.Tensor:
        bottom = self.bottom(dense)
        looked_up = [table(*bag) for table, bag in zip(self.tables, bags, strict=True)]
        features = torch.stack([bottom, *looked_up], dim=1)
        products = torch.bmm(features, features.transpose(1, 2))
        interactions = products[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([bottom, interactions], dim=1)).squeeze(1)


def draw_bag(samples: int, rows: int) -> Bag:
    """Rows with a long tail; how many there are differs from sample to sample and from step to step."""
    longest = int(torch.randint(1, LONGEST_BAG + 1, ()))
    lengths = torch.randint(1, longest + 1, (samples,))
    chosen = (rows * torch.rand(int(lengths.sum())) ** 3).long()
    return chosen.to(args.device), (lengths.cumsum(0) - lengths).to(args.device)


model = Recommender(args.width).to(args.device)
sparse = [table.weight for table in model.tables if table.sparse]
dense_parameters = [p for p in model.parameters() if all(p is not weight for weight in sparse)]
optimizers = [
    torch.optim.SparseAdam(sparse, lr=1e-3),
    torch.optim.Adagrad(dense_parameters, lr=1e-2),
]
for step in range(args.steps):
    dense = torch.randn(args.batch_size, DENSE).to(args.device)
    bags = [draw_bag(args.batch_size, rows) for rows in ROWS]
    clicked = (torch.rand(args.batch_size) < 0.25).float().to(args.device)
    loss = F.binary_cross_entropy_with_logits(model(dense, bags), clicked)
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    print(f"step {step} loss {loss.item()!r}")
