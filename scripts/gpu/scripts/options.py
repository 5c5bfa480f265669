"""What the scripts of the check share: options, seeds, and what they print, so that equal runs print equal bytes."""

import argparse
import hashlib
import sys

import torch


def parse(description: str, steps: int = 30) -> argparse.Namespace:
    """The options; determinism is asked for, and torch is seeded."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--scale", type=float, default=1.0, help="of batches; 0.01 is enough for a CPU")
    args = parser.parse_args()
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    torch.manual_seed(args.seed)
    return args


def scaled(args: argparse.Namespace, count: int) -> int:
    return max(2, int(count * args.scale))


def digest(tensors: list[torch.Tensor]) -> str:
    """Of all bits of the tensors."""
    found = hashlib.sha256()
    for tensor in tensors:
        found.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()[:16]


def tell(name: str, value: object) -> None:
    print(f"{name} {value!r}")


def end(args: argparse.Namespace, module: torch.nn.Module) -> None:
    """The parameters to stdout; the peak of memory, which may differ, to stderr."""
    tell("parameters", digest(list(module.parameters())))
    peak = torch.cuda.max_memory_reserved() if args.device.startswith("cuda") else 0
    print(f"peak_bytes {peak}", file=sys.stderr)
