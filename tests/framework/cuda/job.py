"""A job's script, for a host on a GPU: where its memory lies, what it is told, which stream its threads have."""

import sys
import threading

import torch

megabytes = int(sys.argv[1])
kept = torch.empty(megabytes << 20, dtype=torch.uint8, device="cuda")
print(torch.cuda.memory_allocated() >> 20, torch.cuda.max_memory_allocated() >> 20, torch.cuda.device_count())
stream = torch.cuda.current_stream()
seen = []
thread = threading.Thread(target=lambda: seen.append(torch.cuda.current_stream() == stream))
thread.start()
thread.join()
print(seen == [True], stream.cuda_stream != 0, torch.ones(10).sum().item())
try:
    torch.empty(1 << 40, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError as error:
    print(str(error)[:19])
torch.cuda.synchronize()
