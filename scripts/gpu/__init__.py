"""What is checked on a machine with a GPU; `scripts/gpu_check.py` runs it."""
