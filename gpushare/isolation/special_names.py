"""Names of methods that the interpreter looks for in a class, not through it."""

from __future__ import annotations

import builtins
import types

# Of what no type of the interpreter's own has.
_OF_NO_TYPE = {
    *("__matmul__", "__rmatmul__", "__imatmul__", "__ipow__", "__idivmod__", "__getattr__", "__missing__"),
    *("__aenter__", "__aexit__", "__buffer__", "__release_buffer__", "__fspath__", "__length_hint__"),
}
_types = [kind for names in (builtins, types) for kind in vars(names).values() if isinstance(kind, type)]
_SPECIAL = {name for kind in _types for name in dir(kind)} | _OF_NO_TYPE


def is_special(name: str) -> bool:
    """Whether a class that has such an attribute is another kind of thing, whatever that answers. Packages make up
    names that only look like these."""
    return name[:2] == "__" == name[-2:] and name in _SPECIAL
