"""An excepthook that raises."""

import sys


def hook(kind, error, frames):
    try:
        raise TypeError("first")
    except TypeError:
        raise KeyError("second")  # noqa: B904


sys.excepthook = hook
1 / 0  # noqa: B018
