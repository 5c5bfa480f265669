"""Assigns files to sys.stdout and sys.stderr and never closes them."""

import sys
import warnings

print("to the pipe")
sys.stdout = open("train.log", "w")
sys.stderr = open("errors.log", "w")
for step in range(3):
    print("loss", step)
warnings.warn("into the file")


class Model:
    def __del__(self):
        print("to the pipe again", describe(self))


def describe(model):
    return type(model).__name__, len(kept)


kept = [Model()]
raise ValueError("into the file too")
