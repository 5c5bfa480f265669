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

# What torch tells of where something was registered.
library = torch.library.Library("own_operators", "FRAGMENT")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: x * 2, "CPU")
torch.library.register_fake("own_operators::twice", torch.empty_like)
again = torch.library.Library("own_operators", "FRAGMENT")
for register in (
    lambda: again.define("twice(Tensor x) -> Tensor"),
    lambda: again.impl("twice", lambda x: x * 3, "CPU"),
    lambda: torch.library.register_fake("own_operators::twice", torch.zeros_like),
):
    try:
        register()
    except RuntimeError as error:
        print(str(error).split("\nException raised from")[0])
print(torch.ops.own_operators.twice(torch.ones(2)))
