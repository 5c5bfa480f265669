"""Starts itself again with another environment, as scripts do that must set a variable before python begins."""

import atexit
import os
import sys

if os.environ.get("AGAIN") is None:
    atexit.register(print, "never seen")
    try:
        os.execv("/nowhere/python", ["python"])
    except OSError as error:
        print(repr(error), flush=True)
    os.chdir("/")
    os.execve(
        sys.executable, [sys.executable, os.path.abspath(sys.argv[0]), "2"], {**os.environ, "AGAIN": "1"}
    )
print(sys.argv[1:], os.environ["AGAIN"], os.getcwd())
print("to stderr", file=sys.stderr)
sys.exit(int(sys.argv[1]))
