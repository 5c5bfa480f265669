"""What the examples share: their options, and text that is on every machine with Python."""

import argparse
import sysconfig
from pathlib import Path

import torch


def parse(description: str, batch_size: int, steps: int, width: int) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch-size", type=int, default=batch_size)
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--width", type=int, default=width, help="size of the model")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    return args


def standard_library_text() -> torch.Tensor:
    """Some modules of the standard library as one row of byte values, below 128."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    names = ["argparse.py", "ast.py", "inspect.py", "logging/__init__.py", "pathlib.py", "typing.py"]
    found = [
        folder / name for name in names if (folder / name).is_file()
    ]  # pathlib is a package from 3.13 on
    text = b"".join(file.read_bytes() for file in found)
    return torch.tensor([min(byte, 127) for byte in text])


def batch_of_text(text: torch.Tensor, batch_size: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    starts = torch.randint(len(text) - length - 1, (batch_size, 1))
    rows = text[starts + torch.arange(length + 1)]
    return rows[:, :-1], rows[:, 1:]
