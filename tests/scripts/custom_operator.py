"""An operator of its own with a gradient, as `torch.library` makes it, by eager and by fake tensors."""

import os

import torch

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.manual_seed(60)


@torch.library.custom_op("own_operators::scale", mutates_args=())
def scale(x: torch.Tensor, factor: float) -> torch.Tensor:
    return x * factor


@torch.library.register_fake("own_operators::scale")
def _(x, factor):
    return torch.empty_like(x)


def backward(context, gradient):
    return gradient * context.factor, None


def setup(ctx, inputs, output):
    ctx.factor = inputs[1]


torch.library.register_autograd("own_operators::scale", backward, setup_context=setup)
model = torch.nn.Linear(6, 3).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(8):
    loss = torch.ops.own_operators.scale(model(torch.randn(5, 6, device=device)), 0.5 + step).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
torch.library.opcheck(
    scale, (torch.randn(3, requires_grad=True), 2.0), test_utils=("test_schema", "test_faketensor")
)
print(sum(p.sum().item() for p in model.parameters()))
