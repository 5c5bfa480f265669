"""An encoder of BERT's size that learns masked tokens: post-norm layers, Adam, bfloat16 by autocast."""

import torch
from arguments import parse
from torch import nn
from torch.nn import functional as F

VOCABULARY, MASK, MASKED = 30_522, 103, 0.15
args = parse(__doc__, batch_size=32, width=768, depth=12, heads=12, length=128)


class Encoder(nn.Module):
    def __init__(self, width: int, depth: int, heads: int, length: int) -> None:
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, width)
        self.position = nn.Embedding(length, width)
        self.norm = nn.LayerNorm(width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.1, "gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, depth)
        nn.init.normal_(self.token.weight, std=0.02)
        self.head = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width))

    def forward(self, tokens: torch.Tensor, masked: torch.Tensor) -> torch.Tensor:
        """Logits of the masked places."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        hidden = F.dropout(self.norm(self.token(tokens) + self.position(positions)), 0.1)
        return F.linear(self.head(self.layers(hidden)[masked]), self.token.weight)


model = Encoder(args.width, args.depth, args.heads, args.length).to(args.device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, weight_decay=0.01)
for step in range(args.steps):
    tokens = torch.randint(VOCABULARY, (args.batch_size, args.length))
    masked = torch.rand(tokens.shape) < MASKED
    masked[0, 0] = True  # never none
    seen = tokens.masked_fill(masked, MASK).to(args.device)
    wanted = tokens[masked].to(args.device)
    with torch.autocast(torch.device(args.device).type, torch.bfloat16):
        loss = F.cross_entropy(model(seen, masked.to(args.device)), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item()!r}")
