"""A recurrent network on sequences of different lengths, packed."""

import os

import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.manual_seed(18)
embed, rnn, head = torch.nn.Embedding(30, 12), torch.nn.GRU(12, 16, batch_first=True), torch.nn.Linear(16, 30)
modules = torch.nn.ModuleList([embed, rnn, head]).to(device)
optimizer = torch.optim.Adam(modules.parameters(), lr=0.01)
for step in range(6):
    rows = [torch.randint(30, (int(n),)).to(device) for n in torch.randint(3, 20 + step, (8,))]
    lengths = torch.tensor([len(row) for row in rows])
    packed = pack_padded_sequence(
        embed(pad_sequence(rows, batch_first=True)), lengths, batch_first=True, enforce_sorted=False
    )
    out, _ = pad_packed_sequence(rnn(packed)[0], batch_first=True)
    targets = pad_sequence(rows, batch_first=True, padding_value=-100)[:, 1:]
    loss = torch.nn.functional.cross_entropy(head(out)[:, :-1].flatten(0, 1), targets.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, lengths.tolist(), loss.item())
