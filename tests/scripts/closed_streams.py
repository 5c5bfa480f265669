"""Closes its output, and goes on with files, children, and by the number of the descriptor, which stays open."""

import os
import subprocess
import sys

print("first")
sys.stdout.close()
os.write(1, b"by its number\n")
subprocess.run(["echo", "a child"], check=True)
file = os.open(os.devnull, os.O_RDONLY)
os.close(file)
copy = os.dup(2)
os.dup2(copy, 2)
os.close(copy)
os.close(1)
for call in (lambda: os.write(1, b"lost"), lambda: print("lost")):
    try:
        call()
    except (OSError, ValueError) as error:
        print(type(error).__name__, error, file=sys.stderr, flush=True)
