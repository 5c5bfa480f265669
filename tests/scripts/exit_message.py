"""sys.exit with a text, from within try and finally."""

import atexit
import sys
import weakref


class Kept:
    pass


kept = Kept()
weakref.finalize(kept, print, "finalized")
atexit.register(lambda: print("second"))
atexit.register(lambda: print("first"))
try:
    sys.exit("something is missing")
finally:
    print("finally")
