"""The options of all workloads."""

import argparse

import torch


def parse(description: str, batch_size: int, steps: int = 12, **sizes: int) -> argparse.Namespace:
    """Parse the command line and seed torch; each of `sizes` becomes an option of its own.

    With `--deterministic` torch warns of an operation that has no deterministic form, and computes it all the same.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch-size", type=int, default=batch_size)
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--deterministic", action="store_true", help="what can be computed so, without cuDNN's search"
    )
    for name, default in sizes.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default)
    args = parser.parse_args()
    if args.deterministic:
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.backends.cudnn.benchmark = False
    torch.manual_seed(args.seed)
    return args
