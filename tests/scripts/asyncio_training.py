"""asyncio around training, with work in an executor."""

import asyncio
import os

import torch

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.manual_seed(44)
model = torch.nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step(x):
    loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


async def batches():
    for _ in range(4):
        await asyncio.sleep(0.001)
        yield torch.randn(6, 4, device=device)


async def main():
    loop = asyncio.get_running_loop()
    async for x in batches():
        print(await loop.run_in_executor(None, step, x))
    print(
        await asyncio.gather(
            *(asyncio.to_thread(torch.numel, x) for x in [torch.ones(2, device=device), torch.ones(3)])
        )
    )


asyncio.run(main())
