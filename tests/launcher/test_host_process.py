"""What ends with the host, and what does not."""

import subprocess
import sys
import time
from pathlib import Path

# Where a host would be: it leaves a child of its own session behind, as one that a script has made a daemon.
HOST = """
import subprocess, sys
left = subprocess.Popen(["sleep", "1000"], start_new_session=True, stdout=subprocess.DEVNULL)
open("left", "w").write(str(left.pid))
"""
LAUNCHER = """
import psutil
from gpushare.launcher import host_process
host_process._START = open("host.py").read()
host = host_process.HostProcess([], open("host.log", "wb"), give_stdin=False)
host.wait()
(left,) = [p for p in psutil.Process().children() if p.pid == int(open("left").read())]
host.sweep()
print("left behind:", left.is_running(), flush=True)
"""


def test_who_started_gpushare_keeps_its_children(tmp_path: Path) -> None:
    (tmp_path / "host.py").write_text(HOST)
    (tmp_path / "launcher.py").write_text(LAUNCHER)
    shell = 'exec > >(tee -a run.log) 2>&1; exec "$0" launcher.py'
    subprocess.run(["bash", "-c", shell, sys.executable], cwd=tmp_path, check=True, timeout=60)
    log, deadline = tmp_path / "run.log", time.monotonic() + 20
    while "left behind" not in log.read_text() and time.monotonic() < deadline:
        time.sleep(0.05)  # nobody waits for tee
    assert log.read_text() == "left behind: False\n"
