"""The encoding of a script's streams, and what becomes of what it lacks, byte for byte as under plain python."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import console, environment

SCRIPT = """
import os, sys
for name in ("stdin", "stdout", "stderr"):
    stream = getattr(sys, name)
    print(name, stream.encoding, stream.errors, flush=True)
for text in (os.fsdecode(b"caf\\xe9"), "caf\\xe9", "\\u20ac"):
    for stream in (sys.stdout, sys.stderr):
        try:
            print(text, file=stream, flush=True)
        except UnicodeError as error:
            print(type(error).__name__, file=stream, flush=True)
print(ascii(sys.stdin.read()))
"""


def environments() -> list[dict[str, str]]:
    locales = [{"LANG": "C"}, {"LC_ALL": "C"}, {"LC_ALL": "POSIX"}, {"LANG": "C.UTF-8"}, {}]
    asked = [{"PYTHONIOENCODING": how} for how in ("latin-1", "ascii:replace", ":ignore")]
    return locales + asked + [{"LC_ALL": "C", "PYTHONUTF8": how} for how in "01"]


@pytest.mark.parametrize("asked", environments(), ids=str)
@pytest.mark.parametrize("beside", [(), ("quiet.py",)], ids=["alone", "beside"])
def test_streams_are_as_under_plain_python(
    asked: dict[str, str], beside: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "says.py").write_text(SCRIPT)
    (tmp_path / "quiet.py").write_text("")
    decides = ("LC_", "LANG", "PYTHONIOENCODING", "PYTHONUTF8")
    there = {name: value for name, value in environment(tmp_path).items() if not name.startswith(decides)}
    given = b"" if beside else b"caf\xe9\n"
    common = {"cwd": tmp_path, "env": there | asked, "input": given, "capture_output": True, "timeout": 240}
    plain = subprocess.run([sys.executable, "says.py"], **common)
    run = subprocess.run([*console(), "run", "says.py", *beside, "--log-dir", "logs"], **common)
    assert run.returncode == plain.returncode, os.fsdecode(run.stderr)
    assert (tmp_path / "logs" / "says.out").read_bytes() == plain.stdout
    assert (tmp_path / "logs" / "says.err").read_bytes().splitlines()[:3] == plain.stderr.splitlines()[:3]
