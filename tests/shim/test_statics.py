"""Two jobs come to one C++ static whose initializer calls Python: the second must not keep the GIL."""

import subprocess
from pathlib import Path

from conftest import Run

SOURCE = """
struct Slow { Slow(void (*python)(void)) { python(); } };
extern "C" __attribute__((visibility("default"))) void touch(void (*python)(void)) { static Slow made(python); }
"""
JOB = """
import ctypes, pathlib, sys, time
here, other = sys.argv[1:]
library = ctypes.PyDLL("../statics.so")  # calls with the GIL, as torch's bindings do
kind = ctypes.PYFUNCTYPE(None)
def initialize():
    print("initializes")
    pathlib.Path("../inside").touch()
    time.sleep(0.5)  # gives up the GIL
pathlib.Path("../" + here).touch()
while not pathlib.Path("../" + other).exists() or (here == "second" and not pathlib.Path("../inside").exists()):
    time.sleep(0.005)
library.touch(kind(initialize))
print("through")
"""


def test_who_waits_for_a_static_gives_up_the_gil(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "statics.cpp").write_text(SOURCE)
    command = [
        "g++",
        "-std=c++20",
        "-shared",
        "-fPIC",
        "-o",
        tmp_path / "statics.so",
        tmp_path / "statics.cpp",
    ]
    subprocess.run(command, check=True)
    tables = []
    for name, other in (("first", "second"), ("second", "first")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / f"{name}.py").write_text(JOB)
        tables.append(f"[[job]]\ncommand = '{folder}/{name}.py {name} {other}'\ncwd = '{folder}'\n")
    (tmp_path / "jobs.toml").write_text("".join(tables))
    done = gpushare("run", "-f", "jobs.toml", timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "first | initializes" in done.stdout and "second | initializes" not in done.stdout
    assert "first | through" in done.stdout and "second | through" in done.stdout
