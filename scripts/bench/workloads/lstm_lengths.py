"""An LSTM language model on packed sentences: every step has other lengths, and so other sizes."""

import torch
from arguments import parse
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence

VOCABULARY, SHORTEST = 10_000, 6
args = parse(__doc__, batch_size=72, width=320, longest=96)


class LanguageModel(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, width)
        self.recurrent = nn.LSTM(width, width, num_layers=2, dropout=0.2, batch_first=True)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Logits of all tokens, in the order of the packed sequence."""
        packed = pack_padded_sequence(self.token(tokens), lengths, batch_first=True, enforce_sorted=False)
        hidden, _ = self.recurrent(packed)
        return self.head(F.dropout(hidden.data, 0.2))


def sentences(count: int, longest: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Padded tokens and the length of each row; the longest row differs from batch to batch."""
    limit = int(torch.randint(longest // 4, longest + 1, ()))
    lengths = torch.randint(SHORTEST, limit + 1, (count,))
    return torch.randint(VOCABULARY, (count, int(lengths.max()) + 1)), lengths


model = LanguageModel(args.width).to(args.device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(args.steps):
    tokens, lengths = sentences(args.batch_size, args.longest)
    tokens = tokens.to(args.device)
    targets = pack_padded_sequence(tokens[:, 1:], lengths, batch_first=True, enforce_sorted=False).data
    loss = F.cross_entropy(model(tokens[:, :-1], lengths), targets)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    print(f"step {step} loss {loss.item()!r}")
