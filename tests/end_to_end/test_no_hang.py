"""Runs that would hang if anybody waited with a lock in hand."""

import json
from pathlib import Path

import pytest
from conftest import Run

JOBS = Path(__file__).parent.parent.parent / "scripts" / "bench" / "jobs"


def test_both_jobs_doubling_their_batch_go_through(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    (tmp_path / "grow.py").write_text(
        "import torch\ntorch.manual_seed(0)\n"
        "m = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(8)])\n"
        "o = torch.optim.SGD(m.parameters(), lr=0.1)\n"
        "for step in range(12):\n"
        "    loss = m(torch.randn(2048 if step < 5 else 4096, 512)).square().mean()\n"
        "    o.zero_grad(); loss.backward(); o.step()\n"
        "    print(step, loss.item())\n"
    )
    options = ("--budget", "160MiB", "--summary", "s.json", "--log-dir", "logs")
    done = gpushare("run", "grow.py", "grow.py", *options)
    # Both outgrow their claims in one iteration, or do not fit beside what the other keeps: one is copied out.
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "s.json").read_text())
    assert [j["iterations"] for j in summary["jobs"]] == [12, 12]
    assert summary["pool_peak_bytes"] <= summary["budget_bytes"]
    expected = plain(tmp_path / "grow.py").stdout
    for name in ("grow", "grow-2"):
        assert (tmp_path / "logs" / f"{name}.out").read_text() == expected


def test_an_allocation_in_an_import_that_the_other_makes_next(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "allocating_module.py").write_text(
        "import time, torch\ntime.sleep(0.2)\ntable = torch.ones(8 << 20)\n"
    )
    (tmp_path / "importing.py").write_text((JOBS / "importing.py").read_text())
    done = gpushare(
        "run", "importing.py --steps 8", "importing.py --steps 8", "--budget", "230MiB", "--summary", "s.json"
    )
    # What the import takes is in no claim, so one of them may end out of memory, but both end.
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert 8 in [j["iterations"] for j in json.loads((tmp_path / "s.json").read_text())["jobs"]]


def test_workers_started_again_and_again_beside_a_job_that_computes(gpushare: Run, tmp_path: Path) -> None:
    job = f"{JOBS / 'loader_restarts.py'} --restarts 12"
    done = gpushare("run", job, job, "--summary", "s.json")
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "s.json").read_text())
    assert [j["iterations"] for j in summary["jobs"]] == [24, 24]
    assert summary["parks"] >= 48


PROGRAMS = """
import pathlib, subprocess
pathlib.Path("begun").touch()
for n in range(300):
    subprocess.run(["/bin/true"], capture_output=True, preexec_fn=(lambda: None) if n % 10 == 0 else None)
pathlib.Path("ended").touch()
print("all ended")
"""
WORKERS = """
import multiprocessing, pathlib, time
def wait_for(name):
    for tries in range(4000):
        if pathlib.Path(name).exists():
            return
        time.sleep(0.005)
    print("in vain")
wait_for("begun")
fork = multiprocessing.get_context("fork")  # which is not the default from Python 3.14 on
workers = [fork.Process(target=wait_for, args=("ended",)) for _ in range(40)]
for worker in workers:
    worker.start()
    time.sleep(0.003)
for worker in workers:
    worker.join()
"""


def test_programs_end_although_another_job_forks_workers_that_stay(gpushare: Run, tmp_path: Path) -> None:
    """A worker that has the end of a pipe which the program's output comes by would keep it open."""
    (tmp_path / "programs.py").write_text(PROGRAMS)
    (tmp_path / "workers.py").write_text(WORKERS)
    done = gpushare("run", "programs.py", "workers.py", timeout=120)
    assert done.returncode == 0 and "all ended" in done.stdout, done.stdout + done.stderr
    assert "in vain" not in done.stdout


COMPILES = """
import pathlib, sys, time, torch
sys.path.insert(0, ".")
who = sys.argv[1]
def meet(point, other):
    pathlib.Path(f"{point}-{who}").touch()
    while not pathlib.Path(f"{point}-{other}").exists():
        time.sleep(0.005)
def compiler(graph, inputs):  # runs with the compiler's lock in hand
    if who == "compiles":
        meet("locked", "holds")
        for tries in range(5):  # it waits for two seconds, which a machine that stalls may let pass
            try:
                torch.ones(40 << 20)
                break
            except RuntimeError:
                if tries == 4:
                    raise
    return graph.forward
function = torch.compile(lambda x: x + 1, backend=compiler)
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def steps():  # both jobs are past their profiles at step 4: before that one would wait to be alone
    step = 0
    while step < 8:
        if step == 4:
            pathlib.Path(f"profiled-{who}").touch()
            if len(list(pathlib.Path(".").glob("profiled-*"))) < 2:
                yield 3
                continue
        yield step
        step += 1
for step in steps():
    optimizer.zero_grad()
    model(torch.randn(8, 64)).sum().backward()
    if step == 5:
        if who == "holds":
            held = torch.ones(40 << 20)
            meet("locked", "compiles")
        function(torch.ones(4))
        held = None
    optimizer.step()
"""


def test_memory_wanted_while_compiling_and_held_by_who_compiles_next(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(COMPILES)
    done = gpushare(
        "run", "job.py compiles", "job.py holds", "--budget", "240MiB", "--summary", "s.json", timeout=180
    )
    iterations = [j["iterations"] for j in json.loads((tmp_path / "s.json").read_text())["jobs"]]
    assert iterations[1] >= 8, done.stdout + done.stderr
    assert done.returncode == 0


LARGE_BATCH = """
import torch
model = torch.nn.Linear(256, 256)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    batch = torch.ones(16 << 20)
    loss = model(batch[: 256 * 2000].view(2000, 256)).square().mean()
    optimizer.zero_grad(); loss.backward()
    del batch
    optimizer.step()
print("done")
"""


def test_batches_that_are_there_before_the_first_iteration(gpushare: Run, tmp_path: Path) -> None:
    """What the second job sets up with is what the first one needs next, and nobody knows that yet."""
    (tmp_path / "large.py").write_text(LARGE_BATCH)
    done = gpushare("run", "large.py", "large.py", "--budget", "100MiB")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "large | done" in done.stdout and "large-2 | done" in done.stdout


# "wants" takes a lock that both have, and then, in its iteration `when`, what "sleeps" has, who sleeps for the lock in
# its own.
LOCKS = """
import pathlib, sys, threading, time, torch
lock = vars(threading).setdefault("_lock_of_this_test", threading.Lock())
who, when = sys.argv[1:] or ("alone", "6")
when = int(when)

def wait_for(point):
    while who != "alone" and not pathlib.Path(point).exists():
        time.sleep(0.01)

torch.manual_seed(0)
model = torch.nn.Linear(256, 256)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(8):
    if step == when and who == "wants":
        wait_for("sleeps-is-open")
        lock.acquire()
        pathlib.Path("wants-has-it").touch()
    loss = model(torch.randn(64, 256)).square().mean()
    many = 3 if who != "wants" else 1 if step < when else 5
    kept = [loss * torch.ones(4 << 20) for _ in range(many)]
    if step == when and who == "sleeps":
        pathlib.Path("sleeps-is-open").touch()
        wait_for("wants-has-it")
        lock.acquire()
    if step == when and who != "alone":
        lock.release()
    optimizer.zero_grad()
    torch.stack([k.mean() for k in kept]).mean().backward()
    del kept
    optimizer.step()
    print(step, loss.item())
"""


@pytest.mark.parametrize(("policy", "when"), [("greedy", 6), ("temporal", 0)])
def test_a_lock_in_the_hand_of_who_waits(
    gpushare: Run, plain: Run, tmp_path: Path, policy: str, when: int
) -> None:
    (tmp_path / "job.py").write_text(LOCKS)
    options = ("--policy", policy, "--budget", "260MiB", "--summary", "s.json", "--log-dir", "logs")
    done = gpushare("run", f"job.py wants {when}", "job.py sleeps 6", *options, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "s.json").read_text())
    assert [job["iterations"] for job in summary["jobs"]] == [8, 8]
    assert summary["pool_peak_bytes"] <= summary["budget_bytes"]
    assert summary["jobs"][1]["copies_out"] > 0
    assert (tmp_path / "logs" / "job-2.out").read_text() == plain(tmp_path / "job.py").stdout
