"""The error comes while a module of the script's own folder is imported."""

import pathlib
import sys

pathlib.Path("broken.py").write_text("value = 1\n\n\ndef fail():\n    raise ValueError(value)\n\n\nfail()\n")
sys.path.insert(0, ".")
sys.dont_write_bytecode = True
try:
    import no_such_module
except ImportError as error:
    print(type(error).__name__, error, error.name)
import broken
