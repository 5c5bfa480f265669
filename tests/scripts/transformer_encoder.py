"""A transformer with a padding mask, label smoothing and parameter groups."""

import os

import torch
from torch import nn

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.manual_seed(41)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(40, 16, padding_idx=0)
        layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 3)

    def forward(self, tokens):
        hidden = self.encoder(self.embed(tokens), src_key_padding_mask=tokens == 0)
        return self.head(hidden.mean(1))


model = Classifier().to(device)
groups = [{"params": model.head.parameters(), "lr": 1e-2}, {"params": model.encoder.parameters()}]
optimizer = torch.optim.AdamW(groups, lr=1e-3)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
for step in range(5):
    tokens = torch.randint(1, 40, (8, 12), device=device)
    tokens[:, 9 + step % 3 :] = 0
    loss = criterion(model(tokens), torch.randint(3, (8,), device=device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
