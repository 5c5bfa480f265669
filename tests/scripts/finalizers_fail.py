"""Finalizers of which some raise: the others run all the same."""

import io
import multiprocessing.util
import sys
import weakref

import torch

torch.manual_seed(0)


class Kept:
    pass


def fail():
    raise ValueError("told on stderr")


kept = Kept()
sys.stderr = io.StringIO()  # where the frames that are told of differ
for function, *arguments in ((print, "first"), (fail,), (print, "last")):
    weakref.finalize(kept, function, *arguments)
for priority, function, *arguments in ((1, print, "second"), (2, fail), (3, print, "first")):
    multiprocessing.util.Finalize(None, function, arguments, exitpriority=priority)
