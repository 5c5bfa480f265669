"""Jobs with threads that mostly sleep, as progress bars, data loaders and writers of logs have them, make room for each
other as jobs of one thread do; what such a thread reads when it wakes is there."""

import json
from pathlib import Path

import pytest
from conftest import Run

OPTIONS = ("--budget", "170MiB", "--policy", "greedy", "--summary", "s.json", "--log-dir", "logs")
# Both are in their eleventh iteration when it outgrows all before.
TRAINING = """
import os, pathlib, queue, select, sys, threading, time, torch
torch.manual_seed(0)
model = torch.nn.Linear(512, 512)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
frozen = torch.full((256, 512), 7.0)
words, wrong, ending, messages = frozen.numpy(), [], threading.Event(), queue.Queue()

def look():
    if not (words == 7).all():
        wrong.append("changed")

{threads}

for step in range(20):
    loss = model(torch.randn(64, 512)).square().mean()
    if step == 10 and len(sys.argv) > 1:
        pathlib.Path("met-" + sys.argv[1]).touch()
        while not all(pathlib.Path("met-" + who).exists() for who in "ab"):
            time.sleep(0.01)
    messages.put(step)
    kept = [loss * torch.ones(1 << 20) for _ in range(6 if step < 10 else 12)]
    {while_open}
    optimizer.zero_grad()
    torch.stack([k.mean() for k in kept]).mean().backward()
    optimizer.step()
    print(step, loss.item())
    del kept
ending.set()
print(wrong)
"""
MONITOR = """
def monitor():
    while not ending.wait(0.002):
        look()
threading.Thread(target=monitor, daemon=True).start()
"""
WRITER = """
def write():
    while messages.get() is not None:
        look()
threading.Thread(target=write, daemon=True).start()
"""
SLEEPER = """
def sleep():
    while not ending.is_set():
        time.sleep(0.002)
        look()
threading.Thread(target=sleep, daemon=True).start()
"""
LISTENER = """
ends = os.pipe()
def listen():
    while not ending.is_set():
        select.select([ends[0]], [], [], 0.002)
        look()
threading.Thread(target=listen, daemon=True).start()
"""
SIMPLE_QUEUE = """
simple = queue.SimpleQueue()
threading.Thread(target=simple.get, daemon=True).start()
"""
CHILD = """
import subprocess
child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
for wait in (child.wait, child.stdout.read):
    threading.Thread(target=wait, daemon=True).start()
"""


@pytest.mark.parametrize(
    "threads",
    [MONITOR, WRITER + SIMPLE_QUEUE, SLEEPER, LISTENER, CHILD],
    ids=["monitor", "writer", "sleeper", "listener", "child"],
)
def test_both_outgrow_their_claims(gpushare: Run, plain: Run, tmp_path: Path, threads: str) -> None:
    (tmp_path / "grow.py").write_text(TRAINING.format(threads=threads, while_open=""))
    done = gpushare("run", "grow.py a", "grow.py b", *OPTIONS)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "s.json").read_text())
    assert [job["iterations"] for job in summary["jobs"]] == [20, 20]
    assert sum(job["copies_out"] for job in summary["jobs"]) > 0
    assert summary["pool_peak_bytes"] <= summary["budget_bytes"]
    expected = plain(tmp_path / "grow.py").stdout
    assert expected.endswith("[]\n")
    for name in ("grow", "grow-2"):
        assert (tmp_path / "logs" / f"{name}.out").read_text() == expected


# Each asks a thread that the other one has started, as it comes where a module that both import keeps an executor.
POOLS = """
from concurrent.futures import ThreadPoolExecutor
pools = vars(threading).setdefault("_pools_of_this_test", {})
if len(sys.argv) > 1:
    who = sys.argv[1]
    pools[who] = ThreadPoolExecutor(1)
    pools[who].submit(int).result()
"""
ASKS = """if step == 10 and len(sys.argv) > 1:
        pools["a" if who == "b" else "b"].submit(look).result()
"""


def test_a_job_needs_a_thread_of_one_that_is_away(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    (tmp_path / "grow.py").write_text(TRAINING.format(threads=POOLS, while_open=ASKS))
    done = gpushare("run", "grow.py a", "grow.py b", *OPTIONS)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "s.json").read_text())
    assert sum(job["copies_out"] for job in summary["jobs"]) > 1
    assert summary["pool_peak_bytes"] <= summary["budget_bytes"]
    for name in ("grow", "grow-2"):
        assert (tmp_path / "logs" / f"{name}.out").read_text() == plain(tmp_path / "grow.py").stdout


RAW = """
import _thread
def watch():
    while not ending.is_set():
        look()
        time.sleep(0.002)
_thread.start_new_thread(watch, ())
"""


def test_threads_without_an_object_are_seen(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "grow.py").write_text(TRAINING.format(threads=RAW, while_open=""))
    done = gpushare("run", "grow.py a", "grow.py b", *OPTIONS[:-2])
    assert done.returncode == 0, done.stdout + done.stderr
    assert sum(job["copies_out"] for job in json.loads((tmp_path / "s.json").read_text())["jobs"]) > 0
    assert done.stdout.count("[]") == 2
