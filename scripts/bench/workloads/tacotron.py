"""Tacotron 2 (Shen et al., 2018): characters to a spectrogram, frame by frame, by two LSTM cells that attend to the
text by content and by where they have attended so far; a convolutional net before and after; Adam."""

from itertools import pairwise

import torch
from arguments import parse
from torch import nn
from torch.nn import functional as F

CHARACTERS, MELS = 148, 80
args = parse(__doc__, batch_size=48, width=512, length=100, frames=200)


def convolutions(*widths: int) -> nn.ModuleList:
    return nn.ModuleList(
        nn.Sequential(nn.Conv1d(before, after, 5, padding=2), nn.BatchNorm1d(after))
        for before, after in pairwise(widths)
    )


class Encoder(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.character = nn.Embedding(CHARACTERS, width)
        self.layers = convolutions(width, width, width, width)
        self.both_ways = nn.LSTM(width, width // 2, batch_first=True, bidirectional=True)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        hidden = self.character(text).transpose(1, 2)
        for layer in self.layers:
            hidden = F.dropout(F.relu(layer(hidden)), 0.5)
        return self.both_ways(hidden.transpose(1, 2))[0]


class Attention(nn.Module):
    """Location-sensitive: weights of the last frame, and their sum, are a part of the energies."""

    def __init__(self, query: int, memory: int, size: int) -> None:
        super().__init__()
        self.query, self.memory = nn.Linear(query, size, bias=False), nn.Linear(memory, size, bias=False)
        self.place = nn.Conv1d(2, 32, 31, padding=15, bias=False)
        self.of_place, self.energy = nn.Linear(32, size, bias=False), nn.Linear(size, 1, bias=False)

    def forward(self, query: torch.Tensor, keys: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
        """Weights of the characters."""
        place = self.of_place(self.place(before).transpose(1, 2))
        return self.energy(torch.tanh(self.query(query)[:, None] + keys + place)).squeeze(-1).softmax(-1)


class Decoder(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.prepare = nn.ModuleList([nn.Linear(MELS, width // 2), nn.Linear(width // 2, width // 2)])
        self.attending = nn.LSTMCell(width // 2 + width, 2 * width)
        self.attention = Attention(2 * width, width, width // 4)
        self.deciding = nn.LSTMCell(3 * width, 2 * width)
        self.frame, self.stop = nn.Linear(3 * width, MELS), nn.Linear(3 * width, 1)
        self.width = width

    def forward(self, memory: torch.Tensor, frames: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Frames and whether to stop there, each frame from the right one before it."""
        rows, length, _ = memory.shape
        shifted = F.pad(frames, (0, 0, 1, 0))[:, :-1]
        for layer in self.prepare:
            shifted = F.dropout(F.relu(layer(shifted)), 0.5)
        keys = self.attention.memory(memory)
        first, second = [
            (memory.new_zeros(rows, 2 * self.width), memory.new_zeros(rows, 2 * self.width)) for _ in range(2)
        ]
        context = memory.new_zeros(rows, self.width)
        weights, summed = memory.new_zeros(rows, length), memory.new_zeros(rows, length)
        made, stops = [], []
        for frame in shifted.unbind(1):
            first = self.attending(torch.cat((frame, context), -1), first)
            weights = self.attention(F.dropout(first[0], 0.1), keys, torch.stack((weights, summed), 1))
            summed = summed + weights
            context = (weights[:, None] @ memory).squeeze(1)
            second = self.deciding(torch.cat((first[0], context), -1), second)
            found = torch.cat((F.dropout(second[0], 0.1), context), -1)
            made.append(self.frame(found))
            stops.append(self.stop(found))
        return torch.stack(made, 1), torch.cat(stops, 1)


class Tacotron(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.encoder, self.decoder = Encoder(width), Decoder(width)
        self.after = convolutions(MELS, width, width, width, width, MELS)

    def forward(self, text: torch.Tensor, frames: torch.Tensor) -> tuple[torch.Tensor, ...]:
        coarse, stops = self.decoder(self.encoder(text), frames)
        hidden = coarse.transpose(1, 2)
        for layer in self.after[:-1]:
            hidden = F.dropout(torch.tanh(layer(hidden)), 0.5)
        return coarse, coarse + F.dropout(self.after[-1](hidden), 0.5).transpose(1, 2), stops


model = Tacotron(args.width).to(args.device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-6)
ends = torch.zeros(args.batch_size, args.frames)
ends[:, -1] = 1
for step in range(args.steps):
    text = torch.randint(CHARACTERS, (args.batch_size, args.length)).to(args.device)
    frames = torch.randn(args.batch_size, args.frames, MELS, device=args.device)
    coarse, fine, stops = model(text, frames)
    loss = F.mse_loss(coarse, frames) + F.mse_loss(fine, frames)
    loss = loss + F.binary_cross_entropy_with_logits(stops, ends.to(args.device))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(f"step {step} loss {loss.item()!r}")
