"""Output by the numbers of descriptors: written, copied, sent elsewhere for a while, closed."""

import contextlib
import os
import subprocess
import sys


@contextlib.contextmanager
def written_to(path, number):
    """As packages with a noisy compiled part have it."""
    sys.stdout.flush()
    before = os.dup(number)
    file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.dup2(file, number)
    os.close(file)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(before, number)
        os.close(before)


os.write(1, b"written\n")
os.write(2, b"to stderr\n")
copy = os.dup(1)
os.write(copy, b"by a copy\n")
os.close(copy)
for number in (1, sys.stdout.fileno()):
    with written_to("elsewhere.txt", number):
        print("not here")
        sys.stdout.flush()
        os.system("echo nor this")
        subprocess.run(["echo", "nor that"], check=True)
        os.write(1, b"or this\n")
print("here again", os.isatty(1), os.fstat(1).st_size >= 0, flush=True)
with open("elsewhere.txt") as file:
    print(file.read(), end="", flush=True)
for call in (os.get_terminal_size, lambda: os.close(12345), lambda: os.write(12345, b"")):
    try:
        call()
    except OSError as error:
        print(type(error).__name__, error.errno, flush=True)
os.close(1)
try:
    os.write(1, b"lost")
except OSError as error:
    print(error, file=sys.stderr)
with open(os.devnull, "w") as nowhere:  # takes the number that is free, under plain python
    sys.stdout = nowhere
    print("nowhere")
os._exit(0)
