"""What a script asks of its memory, with that many MiB in one tensor: `asks.py MEBIBYTES`."""

import sys
import time

import torch

MIB = 1 << 20
size = int(sys.argv[1]) * MIB
kept = torch.ones(size, dtype=torch.uint8, device="cuda")
time.sleep(2)  # the other job has its tensor by then
more = torch.ones(3 * MIB, dtype=torch.uint8, device="cuda")
print(torch.cuda.memory_allocated() // MIB, torch.cuda.max_memory_allocated() // MIB)
del more
print(torch.cuda.memory_allocated() // MIB, torch.cuda.max_memory_allocated() // MIB)
torch.cuda.reset_peak_memory_stats()
print(
    torch.cuda.max_memory_allocated() // MIB, torch.cuda.memory_stats()["allocated_bytes.all.current"] // MIB
)
free, total = torch.cuda.mem_get_info()
print(total // MIB, (total - free) // MIB >= int(sys.argv[1]))
print(int(kept.sum(dtype=torch.int64).item()) == size)
