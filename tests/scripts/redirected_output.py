"""A tee on stdout, redirect_stdout, and progress written with carriage returns."""

import contextlib
import io
import sys


class Tee:
    def __init__(self, stream, path):
        self.stream, self.file = stream, open(path, "w")

    def write(self, text):
        self.stream.write(text)
        self.file.write(text.upper())

    def flush(self):
        self.stream.flush()
        self.file.flush()


sys.stdout = Tee(sys.stdout, "tee.txt")
print("both")
with contextlib.redirect_stdout(io.StringIO()) as text:
    print("hidden")
print(repr(text.getvalue()))
for i in range(3):
    sys.stderr.write(f"\r{i}/2")
sys.stderr.write("\n")
sys.stdout.flush()
print("straight", file=sys.__stdout__)
sys.stdout.file.close()
sys.stdout = sys.__stdout__
print("again")
for stream in (sys.stdin, sys.__stdout__, sys.stdout, sys.stderr):
    print(stream.name, stream.mode, stream)
