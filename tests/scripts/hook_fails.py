"""An excepthook that raises."""

import sys


def hook(kind, error, frames):
    try:
        raise TypeError("first")
    except TypeError:
        print({}["second"])


sys.excepthook = hook
print(1 / 0)
