"""Several unmodified PyTorch scripts on one device, inside one memory budget."""

__version__ = "0.1.0"
