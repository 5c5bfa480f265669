"""Deterministic algorithms, lower precision of matrix products, one kernel of attention."""

import os

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.use_deterministic_algorithms(True)
torch.set_float32_matmul_precision("medium")
torch.backends.cudnn.benchmark = False
torch.manual_seed(8)
embed = torch.nn.Embedding(20, 16).to(device)
project = torch.nn.Linear(16, 20).to(device)
optimizer = torch.optim.SGD([*embed.parameters(), *project.parameters()], lr=0.5)
for step in range(4):
    x = embed(torch.randint(0, 20, (4, 2, 6), device=device))
    with sdpa_kernel(SDPBackend.MATH):
        x = torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
    rows = torch.tensor([0, 1, 2, 2], device=device)
    pooled = torch.zeros(4, 16, device=device).index_add(0, rows, x.mean(dim=(1, 2)))
    loss = torch.nn.functional.cross_entropy(project(pooled), torch.arange(4, device=device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, repr(loss.item()), torch.empty(3, device=device).tolist())
try:
    torch.zeros(3).put_(torch.tensor([0]), torch.ones(1))
except RuntimeError as error:
    print(error)
torch.use_deterministic_algorithms(True, warn_only=True)
print(torch.zeros(3).put_(torch.tensor([0]), torch.ones(1)).tolist(), torch.get_float32_matmul_precision())
print(torch.backends.cuda.flash_sdp_enabled(), torch.backends.mkldnn.matmul.fp32_precision)
