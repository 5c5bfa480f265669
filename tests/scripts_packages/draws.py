"""Draws into what `matplotlib.pyplot` has as its current figure, by a number from the command line."""

import hashlib
import io
import sys
import time

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

slope = int(sys.argv[1])
for number in range(6):
    plt.plot([0, 1, 2], [0, slope, number])
    time.sleep(0.05)
    if number % 2:
        plt.title(f"slope {slope}")
        picture = io.BytesIO()
        plt.savefig(picture, format="raw")
        print(hashlib.md5(picture.getvalue()).hexdigest(), plt.get_fignums(), len(plt.gca().lines))
        plt.close()
plt.subplots(1, 2)
print(plt.get_fignums())
