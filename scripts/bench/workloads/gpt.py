"""A decoder as GPT-2 has it: fused attention, GELU, the head tied to the token embedding, Adam."""

import torch
from arguments import parse
from torch import nn
from torch.nn import functional as F

args = parse(__doc__, batch_size=8, width=256, depth=6, length=256, vocabulary=8192, heads=8)


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1)
        )

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        heads = [part.unflatten(2, (args.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=2)]
        attended = F.scaled_dot_product_attention(*heads, is_causal=True)
        return F.dropout(self.project(attended.transpose(1, 2).flatten(2)), 0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attend(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, width: int, depth: int, length: int, vocabulary: int) -> None:
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        nn.init.normal_(self.token.weight, std=0.02)
        self.head.weight = self.token.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        hidden = F.dropout(self.token(tokens) + self.position(positions), 0.1)
        return self.head(self.norm(self.blocks(hidden)))


model = Decoder(args.width, args.depth, args.length, args.vocabulary).to(args.device)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4, betas=(0.9, 0.95))
for step in range(args.steps):
    tokens = torch.randint(args.vocabulary, (args.batch_size, args.length + 1)).to(args.device)
    logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(f"step {step} loss {loss.item()!r}")
