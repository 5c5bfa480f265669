"""A function with a backward pass of its own."""

import os

import torch

device = torch.device(os.environ.get("DEVICE", "cpu"))


class Clamped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, low):
        ctx.save_for_backward(x)
        ctx.low = low
        return x.clamp(min=low)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x > ctx.low) * 2, None


torch.manual_seed(10)
w = torch.randn(50, device=device, requires_grad=True)
for step in range(6):
    loss = Clamped.apply(w * torch.randn(50, device=device), -0.5).pow(2).sum()
    (grad,) = torch.autograd.grad(loss, w)
    with torch.no_grad():
        w -= 0.01 * grad
    print(step, loss.item())
t = torch.randn(3, dtype=torch.double, device=device, requires_grad=True)
print(torch.autograd.gradcheck(lambda t: t.sin(), t))
