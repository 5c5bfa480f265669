"""A module that takes long to import."""

import time

time.sleep(1.5)
IMPORTED_S = time.monotonic()
