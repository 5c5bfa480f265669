"""A language model of GNMT's size: eight LSTM layers with residual connections, each its own call, Adam."""

import torch
from arguments import parse
from torch import nn
from torch.nn import functional as F

VOCABULARY = 32_000
args = parse(__doc__, batch_size=64, width=1024, depth=8, length=50)


class LanguageModel(nn.Module):
    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, width)
        self.layers = nn.ModuleList(nn.LSTM(width, width, batch_first=True) for _ in range(depth))
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden = F.dropout(self.token(tokens), 0.2)
        for index, layer in enumerate(self.layers):
            after = F.dropout(layer(hidden)[0], 0.2)
            hidden = after + hidden if index >= 2 else after
        return self.head(hidden)


model = LanguageModel(args.width, args.depth).to(args.device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(args.steps):
    tokens = torch.randint(VOCABULARY, (args.batch_size, args.length + 1)).to(args.device)
    loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    print(f"step {step} loss {loss.item()!r}")
