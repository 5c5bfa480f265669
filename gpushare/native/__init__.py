"""The only use of ctypes: the shim, and calls that Python's library lacks."""
