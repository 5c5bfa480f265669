"""Makes a package beside itself, imports it in all ways, and reloads it."""

import importlib
import pathlib
import pickle
import sys

folder = pathlib.Path(__file__).parent / "parts"
folder.mkdir(exist_ok=True)
(folder / "__init__.py").write_text("from .model import Model\nregistry = []\n")
(folder / "model.py").write_text("from . import other\n\n\nclass Model:\n    width = other.WIDTH\n")
(folder / "other.py").write_text(
    "import parts\nWIDTH = 16\n\n\ndef lazy():\n    from parts import registry\n\n    return registry\n"
)
sys.dont_write_bytecode = True
importlib.invalidate_caches()
import parts
import parts.other as other
from parts.model import Model

parts.registry.append(1)
print(Model.width, other.lazy(), Model is parts.Model, sys.modules["parts.model"].Model is Model)
print(
    type(pickle.loads(pickle.dumps(Model()))) is Model,
    Model.__module__,
    sorted(m for m in sys.modules if m.startswith("parts")),
)
(folder / "other.py").write_text("WIDTH = 320\n")
importlib.invalidate_caches()
print(importlib.reload(other).WIDTH, other.WIDTH, importlib.import_module("parts.other") is other)
