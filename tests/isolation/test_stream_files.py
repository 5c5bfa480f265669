"""`/dev/stdout` and its kin, opened by a script, are its own streams."""

from pathlib import Path

from conftest import Run

WRITES = r"""
import json, logging, os, subprocess
print('first', flush=True)
with open('/dev/stdout', 'w') as file:
    json.dump({'a': 1}, file)
    file.write('\n')
with open('/proc/self/fd/2', 'a') as file:
    file.write('an error\n')
os.write(os.open('/dev/stderr', os.O_WRONLY), b'one more\n')
handler = logging.FileHandler('/dev/fd/1')
logging.getLogger('x').addHandler(handler)
logging.getLogger('x').warning('logged')
handler.close()
if os.fork() == 0:
    with open('/dev/stdout', 'w') as file:
        file.write('of a child\n')
    os._exit(0)
os.wait()
subprocess.run('echo of a shell > /dev/stdout', shell=True)
print(os.path.exists('/proc/thread-self/fd/0'))
"""


def test_a_script_that_opens_its_streams_by_name(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    (tmp_path / "writes.py").write_text(WRITES)
    alone = plain("writes.py")
    assert alone.returncode == 0 and "of a child" in alone.stdout, alone.stderr
    done = gpushare("run", "writes.py", "writes.py", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("writes", "writes-2"):
        assert (tmp_path / "logs" / f"{name}.out").read_text() == alone.stdout
        assert (tmp_path / "logs" / f"{name}.err").read_text() == alone.stderr
    assert (tmp_path / "logs" / "host.log").read_text() == ""
