"""A character-level transformer on the standard library's own sources."""

import torch
from common import batch_of_text, parse, standard_library_text
from torch import nn
from torch.nn import functional as F

LENGTH = 96
args = parse(__doc__, batch_size=16, steps=30, width=128)
text = standard_library_text()


class Transformer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.token = nn.Embedding(128, width)
        self.position = nn.Parameter(0.02 * torch.randn(LENGTH, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout=0.1, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.head = nn.Linear(width, 128)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
        hidden = self.layers(self.token(tokens) + self.position, mask=mask, is_causal=True)
        return self.head(hidden)


model = Transformer(args.width).to(args.device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(args.steps):
    x, y = (part.to(args.device) for part in batch_of_text(text, args.batch_size, LENGTH))
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(f"step {step} loss {loss.item()!r}")
