"""The processes in which torch's compiler makes kernels: one pool for all jobs, that no job's end takes away."""

from pathlib import Path

import psutil
from conftest import Run

# What inductor does to compile a kernel for a GPU, and needs none.
KERNELS = """
import pathlib, sys, threading, time
from torch._inductor import config
from torch._inductor.async_compile import AsyncCompile

config.compile_threads = 2
me, other = map(pathlib.Path, sys.argv[1:])
while other.name != "nobody":  # until its thread has ended
    if other.exists() and not pathlib.Path("/proc/self/task", other.read_text()).exists():
        break
    time.sleep(0.02)
pool = AsyncCompile.process_pool()
assert AsyncCompile.process_pool() is pool and AsyncCompile.process_pool.cache_info().currsize == 1
print(pool.submit(int, "7").result(timeout=60))
print(pool.process.pid, file=sys.stderr)
new = me.with_suffix(".new")
new.write_text(str(threading.get_native_id()))
new.rename(me)
"""


def test_kernels_are_compiled_after_the_job_that_made_the_pool(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS)
    done = gpushare("run", "kernels.py first nobody", "kernels.py second first", "--log-dir", "logs")
    assert done.returncode == 0, done.stderr
    logs = [tmp_path / "logs" / name for name in ("kernels", "kernels-2")]
    assert [log.with_suffix(".out").read_text() for log in logs] == ["7\n"] * 2
    processes = {int(log.with_suffix(".err").read_text()) for log in logs}
    assert len(processes) == 1 and not psutil.pid_exists(processes.pop())
