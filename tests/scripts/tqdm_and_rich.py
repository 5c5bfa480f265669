"""Progress bars of two libraries, written to a file and to nowhere."""

import io
import os

import torch
from rich.console import Console
from rich.progress import Progress

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.manual_seed(45)
w = torch.randn(8, device=device, requires_grad=True)
optimizer = torch.optim.Adagrad([w], lr=0.3)
console = Console(file=io.StringIO(), width=60, force_terminal=False)
with Progress(console=console, auto_refresh=False) as progress:
    task = progress.add_task("train", total=5)
    for step in range(5):
        loss = w.pow(2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        progress.advance(task)
        print(step, loss.item())
Console(width=50, no_color=True).print("[bold]done[/bold]", {"loss": round(loss.item(), 4)})
