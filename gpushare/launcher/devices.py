"""The device of a run: what `--device` means here, and what of its memory is free."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import re
from dataclasses import dataclass
from pathlib import Path

import psutil

from gpushare.errors import UsageError
from gpushare.native import gpus

_ELSE = "or use --device cpu"
_NEWEST_TORCH = (2, 15)  # that the tests have been run with
_DRIVERS = (Path("/proc/driver/nvidia/version"), Path("/dev/dxg"))  # the second one: a GPU of WSL


@dataclass(frozen=True)
class Device:
    """`label` is `cpu` or `cuda:N`; `model` the GPU's name. Memory in bytes, when the run began."""

    label: str
    model: str
    free_bytes: int
    total_bytes: int

    @property
    def kind(self) -> str:
        """What profiles are kept by: they hold for any GPU of the same name."""
        return f"cuda {self.model}" if self.model else self.label

    @property
    def described(self) -> str:
        """For people."""
        return f"{self.label} ({self.model})" if self.model else self.label


CPU = Device("cpu", "", 0, 0)  # of whose memory nothing was asked


def choose(text: str) -> Device:
    """The device that `--device` names; `auto` is the first GPU that the driver has, where torch is built for
    CUDA, else the CPU. Whether torch can use that one the host finds out.

    :raises UsageError: it is none, or the GPU can't be used, with what to do.
    """
    if text == "auto":
        return _first_gpu() or choose("cpu")
    if text == "cpu":
        memory = psutil.virtual_memory()
        return Device("cpu", "", memory.available, memory.total)
    kind, colon, number = text.partition(":")
    if kind != "cuda" or (colon and not number.isdecimal()):
        raise UsageError(f"--device must be auto, cpu or cuda[:N], but got {text!r}")
    _check_torch(text)
    return _gpu(text, int(number or 0))


def unmanaged_gpu(device: Device) -> str | None:
    """What to tell where a run is on the CPU, but its scripts could use a GPU."""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    if device.model or hidden or not _has_driver() or not _built_for_cuda():
        return None
    return (
        "the budget is of the CPU's memory: what scripts do on this machine's GPU is outside it and not coordinated; "
        "--device cuda does that, or says why it can't"
    )


def untried_torch() -> str | None:
    """What to tell where torch is newer than any that the tests were run with: what keeps jobs apart replaces private
    parts of it."""
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return None
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) <= _NEWEST_TORCH:
        return None
    newest = ".".join(map(str, _NEWEST_TORCH))
    return (
        f"torch {version} is newer than {newest}, the newest one that gpushare has been tried with: compare a job's "
        "results with those of plain python first"
    )


def _first_gpu() -> Device | None:
    """None where there is none; why one that is there can't be used, `--device cuda` tells (see `unmanaged_gpu`)."""
    if not _has_driver() or not _built_for_cuda():
        return None
    with contextlib.suppress(UsageError):
        return _gpu("cuda", 0)
    return None


def _has_driver() -> bool:
    return any(path.exists() for path in _DRIVERS)


def _built_for_cuda() -> bool:
    found = importlib.util.find_spec("torch")
    at = found.origin if found else None
    return at is not None and (Path(at).parent / "lib" / "libtorch_cuda.so").exists()


def _check_torch(text: str) -> None:
    if importlib.util.find_spec("torch") is None:
        raise UsageError(f"--device {text}: torch is not installed; install one that is built for CUDA")
    if not _built_for_cuda():
        raise UsageError(
            f"--device {text}: torch {importlib.metadata.version('torch')} is built without CUDA; install one with it "
            f"(https://pytorch.org/get-started/locally), {_ELSE}"
        )


def _gpu(text: str, index: int) -> Device:
    told = gpus.ask(index)
    if told.problem and told.count != 0:
        raise UsageError(f"--device {text}: {told.problem}; nvidia-smi must work here, {_ELSE}")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    limit = f" (CUDA_VISIBLE_DEVICES is {visible!r})" if visible is not None else ""
    if told.count == 0:
        why = f" ({told.problem})" if told.problem else ""
        raise UsageError(
            f"--device {text}: there is no GPU{why}{limit}: nvidia-smi must list one, and a container must be started "
            f"with it (docker run --gpus all); {_ELSE}"
        )
    if index >= told.count:
        there = "only cuda:0" if told.count == 1 else f"cuda:0 to cuda:{told.count - 1}"
        raise UsageError(f"--device {text}: there is no such GPU, {there}{limit}")
    return Device(f"cuda:{index}", told.name, told.free_bytes, told.total_bytes)
