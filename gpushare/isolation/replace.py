"""Replacing an object that other modules may have taken by name already."""

from __future__ import annotations

import sys
import types
from typing import Any


def replace_everywhere(pairs: list[tuple[Any, Any]], *, but: str) -> None:
    """Replace the first of each pair wherever a module has it by name (`from random import random`)."""
    old = {id(before): after for before, after in pairs}  # `pairs` keeps them alive, so no number comes twice
    for module in list(sys.modules.values()):
        if not isinstance(module, types.ModuleType) or module.__name__ == but:
            continue
        for name, value in list(vars(module).items()):
            if id(value) in old:
                setattr(module, name, old[id(value)])
