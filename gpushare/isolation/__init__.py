"""What makes a script believe it is alone: one module per kind of process-wide state.

Each has `install()`, called once before jobs start; most look up the calling job in `context`.
"""
