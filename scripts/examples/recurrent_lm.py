"""A recurrent language model on the standard library's own sources."""

import torch
from common import batch_of_text, parse, standard_library_text
from torch import nn
from torch.nn import functional as F

LENGTH = 48
args = parse(__doc__, batch_size=32, steps=30, width=128)
text = standard_library_text()


class RecurrentModel(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.token = nn.Embedding(128, width)
        self.recurrent = nn.LSTM(width, width, num_layers=2, dropout=0.1, batch_first=True)
        self.head = nn.Linear(width, 128)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.recurrent(self.token(tokens))
        return self.head(hidden)


model = RecurrentModel(args.width).to(args.device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
for step in range(args.steps):
    x, y = (part.to(args.device) for part in batch_of_text(text, args.batch_size, LENGTH))
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(f"step {step} loss {loss.item()!r}")
