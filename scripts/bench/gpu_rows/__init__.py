"""Rows of the GPU benchmark, a module for each kind. Not yet run on a GPU."""
