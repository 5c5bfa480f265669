"""Deterministic algorithms, lower precision of matrix products, one kernel of attention."""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.use_deterministic_algorithms(True)
torch.set_float32_matmul_precision("medium")
torch.backends.cudnn.benchmark = False
torch.manual_seed(8)
embed = torch.nn.Embedding(20, 16)
project = torch.nn.Linear(16, 20)
optimizer = torch.optim.SGD([*embed.parameters(), *project.parameters()], lr=0.5)
for step in range(4):
    x = embed(torch.randint(0, 20, (4, 2, 6)))
    with sdpa_kernel(SDPBackend.MATH):
        x = torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
    pooled = torch.zeros(4, 16).index_add(0, torch.tensor([0, 1, 2, 2]), x.mean(dim=(1, 2)))
    loss = torch.nn.functional.cross_entropy(project(pooled), torch.arange(4))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, repr(loss.item()), torch.empty(3).tolist())
try:
    torch.zeros(3).put_(torch.tensor([0]), torch.ones(1))
except RuntimeError as error:
    print(error)
torch.use_deterministic_algorithms(True, warn_only=True)
print(torch.zeros(3).put_(torch.tensor([0]), torch.ones(1)).tolist(), torch.get_float32_matmul_precision())
print(torch.backends.cuda.flash_sdp_enabled(), torch.backends.mkldnn.matmul.fp32_precision)
