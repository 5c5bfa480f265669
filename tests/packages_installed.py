"""Folders as an installer leaves them."""

from collections.abc import Iterable
from pathlib import Path


def write_package(
    site: Path, name: str, files: dict[str, str], *, compiled: bool = False, needs: Iterable[str] = ()
) -> None:
    """A distribution of these files, by their paths in `site`; with `compiled` also of one that is not there."""
    about = site / f"{name}-1.dist-info"
    about.mkdir(parents=True, exist_ok=True)
    required = "".join(f"Requires-Dist: {need}\n" for need in needs)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n{required}\n")
    told = [*files, *([f"{name}_core.abi3.so"] if compiled else [])]
    (about / "RECORD").write_text("".join(f"{path},,\n" for path in told))
    for path, text in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)
