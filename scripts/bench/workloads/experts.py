"""A decoder with a mixture of experts in every block: the router decides how many tokens each expert gets.

Each token goes to two experts; the balancing loss is that of Switch Transformers (Fedus et al. 2021).
"""

import torch
from arguments import parse
from torch import nn
from torch.nn import functional as F

VOCABULARY, HEADS, CHOSEN = 4096, 4, 2
args = parse(__doc__, batch_size=10, width=192, depth=4, experts=8, length=256)


class Experts(nn.Module):
    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        self.router = nn.Linear(width, count, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in range(count)
        )

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The mixed output, and the balancing loss of this layer."""
        tokens = x.flatten(0, 1)
        probabilities = self.router(tokens).softmax(dim=1)
        weights, chosen = probabilities.topk(CHOSEN, dim=1)
        weights = weights / weights.sum(dim=1, keepdim=True)
        mixed = torch.zeros_like(tokens)
        for index, expert in enumerate(self.experts):
            rows, places = torch.where(chosen == index)
            output = expert(tokens.index_select(0, rows)) * weights[rows, places, None]
            mixed = mixed.index_add(0, rows, output)
        share = F.one_hot(chosen, len(self.experts)).float().mean(dim=(0, 1))
        balance = len(self.experts) * (share * probabilities.mean(dim=0)).sum()
        return mixed.view_as(x), balance


class Block(nn.Module):
    def __init__(self, width: int, experts: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.experts = Experts(width, experts)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        qkv = self.qkv(self.norm1(x)).chunk(3, dim=2)
        heads = [part.unflatten(2, (HEADS, -1)).transpose(1, 2) for part in qkv]
        attended = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.project(attended.transpose(1, 2).flatten(2))
        mixed, balance = self.experts(self.norm2(x))
        return x + mixed, balance


class Model(nn.Module):
    def __init__(self, width: int, depth: int, experts: int, length: int) -> None:
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, width)
        self.position = nn.Parameter(0.02 * torch.randn(length, width))
        self.blocks = nn.ModuleList(Block(width, experts) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits, and the sum of the balancing losses."""
        x = self.token(tokens) + self.position
        balances = []
        for block in self.blocks:
            x, balance = block(x)
            balances.append(balance)
        return self.head(self.norm(x)), torch.stack(balances).sum()


model = Model(args.width, args.depth, args.experts, args.length).to(args.device)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.1)
for step in range(args.steps):
    tokens = torch.randint(VOCABULARY, (args.batch_size, args.length + 1)).to(args.device)
    logits, balance = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()) + 0.01 * balance
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(f"step {step} loss {loss.item()!r}")
