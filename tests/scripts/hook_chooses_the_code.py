"""An excepthook that exits with a code of its own; what comes after it still runs."""

import atexit
import multiprocessing.util
import sys
import threading
import time
import traceback
import weakref

import torch

torch.manual_seed(0)


def hook(kind, error, frames):
    traceback.print_exc()
    print("hooked", kind.__name__, error, traceback.extract_tb(frames)[0].lineno)
    sys.exit(3)


class Kept:
    pass


kept = Kept()
atexit.register(print, "at exit")
atexit.register(len, 5)
atexit.register(sys.exit, 4)
weakref.finalize(kept, print, "finalized")
multiprocessing.util.Finalize(None, print, ["finalized by multiprocessing"], exitpriority=1)
threading.Thread(target=lambda: (time.sleep(0.2), print("joined"))).start()
sys.excepthook = hook
raise ValueError("wrong")
