"""torch, imported at its first use: listing checks needs none, and a library can be loaded before it."""

import importlib
from typing import Any


class _Later:
    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("torch"), name)


torch: Any = _Later()
