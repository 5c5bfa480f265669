"""Assigns a file to sys.stdout that can't be flushed at the end."""

import sys

print("to the pipe")
sys.stdout = open("/dev/full", "w")
print("lost")
