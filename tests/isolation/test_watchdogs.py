"""`faulthandler.dump_traceback_later`: a job's watchdog is its own, and ends no other job."""

import re
from pathlib import Path

from conftest import Run

ENDS = "import faulthandler, time\nfaulthandler.dump_traceback_later(1, exit=True)\ntime.sleep(20)\nprint('never')\n"
TELLS = """
import faulthandler, pathlib, sys, time
name = f'told{sys.argv[1]}'

def told():
    return pathlib.Path(name).read_text()

faulthandler.dump_traceback_later(0.5, repeat=True, file=open(name, 'w'))
while told().count('Timeout (0:00:00.500000)!') < 2:
    time.sleep(0.05)
faulthandler.cancel_dump_traceback_later()
time.sleep(0.2)
before = told()
time.sleep(1.2)
print(told() == before, 'tells.py' in before)
try:
    faulthandler.dump_traceback_later(0)
except ValueError as error:
    print(error)
"""


def test_each_job_is_watched_for_itself(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text(ENDS)
    (tmp_path / "tells.py").write_text(TELLS)
    done = gpushare("run", "ends.py", "tells.py 1", "tells.py 2", "--log-dir", "logs")
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"^ends +failed \(1\)", done.stdout, re.M) and done.stdout.count(" ok ") == 2
    logs = tmp_path / "logs"
    assert (logs / "ends.out").read_text() == ""
    assert (logs / "ends.err").read_text().startswith("Timeout (0:00:01)!\n")
    assert plain("ends.py").returncode == 1
    for name in ("tells", "tells-2"):
        assert (logs / f"{name}.out").read_text() == plain("tells.py", "3").stdout
