"""Where the system lets no thread have a working directory of its own, as in Docker."""

import ctypes
import platform
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import environment

_UNSHARE = {"x86_64": 272, "aarch64": 97}
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050001  # with EPERM
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2


def refuse_unshare() -> None:
    """For this process and all that it starts (seccomp(2))."""
    number = _UNSHARE[platform.machine()]
    code = b"".join(
        struct.pack("HBBI", *line)
        for line in (
            (_LOAD, 0, 0, 0),
            (_EQUAL, 0, 1, number),
            (_RETURN, 0, 0, _REFUSE),
            (_RETURN, 0, 0, _ALLOW),
        )
    )
    lines = ctypes.create_string_buffer(code, len(code))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(lines)))
    libc = ctypes.CDLL(None)
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    libc.prctl(_SECCOMP, _FILTER, program, 0, 0)


Confined = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def confined(tmp_path: Path) -> Confined:
    ask = "import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare(0x200) == 0)"
    if subprocess.run([sys.executable, "-c", ask], preexec_fn=refuse_unshare).returncode:
        pytest.skip("the system has no filters for system calls here")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(Path(sys.executable).with_name("gpushare")), *arguments],
            cwd=tmp_path,
            env=environment(tmp_path),
            text=True,
            capture_output=True,
            timeout=240,
            preexec_fn=refuse_unshare,
        )

    return run


def test_jobs_of_one_directory_share_it(confined: Confined, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "goes.py").write_text(
        "import os, pathlib, time\nos.chdir('sub')\nprint('goes in', os.path.basename(os.getcwd()))\n"
        "while not pathlib.Path('seen').exists(): time.sleep(0.005)\n"
    )
    (tmp_path / "stays.py").write_text(
        "import os, pathlib, time\nwhile os.path.basename(os.getcwd()) != 'sub': time.sleep(0.005)\n"
        "pathlib.Path('seen').touch()\n"
        "while os.path.basename(os.getcwd()) == 'sub': time.sleep(0.005)\nprint('back')\n"
    )
    done = confined("run", "goes.py", "stays.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "goes | goes in sub" in done.stdout and "stays | back" in done.stdout
    assert "no working directory of their own" in done.stderr
    assert "goes sets the working directory to" in done.stderr


def test_jobs_of_different_directories_are_refused_in_words(confined: Confined, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "job.py").write_text("print('began')\n")
    command = f"command = '{tmp_path / 'job.py'}'"
    (tmp_path / "jobs.toml").write_text(
        f"[[job]]\n{command}\n[[job]]\n{command}\ncwd = '{tmp_path / 'sub'}'\n"
    )
    done = confined("run", "-f", "jobs.toml")
    assert done.returncode not in (0, 1)
    assert "began" not in done.stdout
    assert "run them from one directory" in done.stderr and "seccomp=unconfined" in done.stderr
