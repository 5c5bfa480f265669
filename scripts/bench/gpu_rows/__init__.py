"""Rows of the GPU benchmark, a module for each kind."""
