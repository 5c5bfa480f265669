"""A recurrent highway network (Zilly et al., 2017): a language model whose every step goes through ten small highway
layers, one after the other, with plain operations; SGD with clipped gradients."""

import torch
from arguments import parse
from torch import nn
from torch.nn import functional as F

VOCABULARY = 10_000
args = parse(__doc__, batch_size=20, width=830, depth=10, length=35)


class HighwayNetwork(nn.Module):
    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, width)
        self.enter = nn.Linear(width, 2 * width, bias=False)
        self.layers = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(depth))
        for layer in self.layers:
            nn.init.constant_(layer.bias[width:], -2.0)  # at first the state is carried
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        entering = self.enter(F.dropout(self.token(tokens), 0.25))
        state, states = torch.zeros_like(entering[:, 0].chunk(2, -1)[0]), []
        for step in range(tokens.shape[1]):
            for index, layer in enumerate(self.layers):
                both = layer(state)
                new, gate = (both if index else both + entering[:, step]).chunk(2, -1)
                gate = torch.sigmoid(gate)
                state = torch.tanh(new) * gate + state * (1 - gate)
            states.append(state)
        return self.head(F.dropout(torch.stack(states, 1), 0.25))


model = HighwayNetwork(args.width, args.depth).to(args.device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, weight_decay=1e-7)
for step in range(args.steps):
    tokens = torch.randint(VOCABULARY, (args.batch_size, args.length + 1)).to(args.device)
    loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 10.0)
    optimizer.step()
    print(f"step {step} loss {loss.item()!r}")
