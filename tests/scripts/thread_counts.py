"""The usual first lines, and what torch answers to a second call."""

import torch

print(torch.get_num_interop_threads())
try:
    torch.set_num_interop_threads(0)
except RuntimeError as error:
    print(str(error).splitlines()[0])
torch.set_num_threads(1)
torch.set_num_interop_threads(1)
print(torch.get_num_threads(), torch.get_num_interop_threads())
try:
    torch.set_num_interop_threads(1)
except RuntimeError as error:
    print(str(error).splitlines()[0])
try:
    torch.set_num_interop_threads("1")
except (TypeError, RuntimeError) as error:
    print(str(error).splitlines()[0])
print(torch.get_num_interop_threads())
