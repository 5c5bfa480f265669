"""Keeps compiled bridges: one file per torch, compiler and sources, written whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from gpushare import places
from gpushare.framework.cuda_toolchain import BridgeError

LIMIT_S = 300.0  # of a compilation; it takes a few seconds


def folder() -> Path:
    """`$XDG_CACHE_HOME/gpushare/bridge`."""
    return places.base("XDG_CACHE_HOME", ".cache") / "gpushare" / "bridge"


def key(sources: Iterable[Path], build: Mapping[str, str]) -> str:
    """A name for what comes out: it differs if a source's name or text, or anything of the build differs."""
    digest = hashlib.sha256()
    for name, text in sorted(build.items()):
        digest.update(f"{name!r}={text!r}\n".encode())
    for source in sorted(sources):
        digest.update(f"{source.name!r}:{hashlib.sha256(source.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def compile_to(path: Path, command: list[str]) -> None:
    """Run the compiler, which gets `-o FILE` behind its command, and put its file at `path` in one step.

    Two processes may do this at once: each has a file of its own, and the later one replaces an equal one.

    :raises BridgeError: the folder can't be written, or the compiler failed; its first errors are in the text.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f"{path.stem[:16]}-", suffix=".tmp", dir=path.parent)
        os.close(descriptor)
    except OSError as error:
        raise BridgeError(f"the cache {path.parent} can't be written: {error}; set XDG_CACHE_HOME") from error
    try:
        _run([*command, "-o", name])
        Path(name).chmod(0o755)
        os.replace(name, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BridgeError(f"the C++ compiler failed: {error}") from error
    if done.returncode != 0:
        lines = done.stderr.splitlines()
        errors = [line for line in lines if "error" in line] or lines[-3:]
        raise BridgeError(
            f"the bridge does not compile (exit code {done.returncode} of {command[0]}): "
            + "; ".join(errors[:3])
        )
