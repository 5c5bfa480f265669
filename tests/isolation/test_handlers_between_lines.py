"""Handlers of signals run in a job's main thread between two lines, or in a wait, as plain python's do."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import Run, console, environment

SEEN = """
import os, signal, subprocess, sys, threading, time
log = []
def handler(number, frame):
    log.append((number, threading.current_thread() is threading.main_thread(), frame.f_code.co_name))
signal.signal(signal.SIGUSR1, handler)
def later(seconds=0.2, number=signal.SIGUSR1):
    threading.Timer(seconds, os.kill, (os.getpid(), number)).start()
"""


def same(gpushare: Run, plain: Run, folder: Path, text: str) -> str:
    """What the script prints, with gpushare as with plain python."""
    (folder / "script.py").write_text(text)
    done = gpushare("run", "script.py", "--log-dir", "logs")
    printed = (folder / "logs" / "script.out").read_text()
    expected = plain("script.py")
    assert (printed, done.returncode) == (expected.stdout, expected.returncode), done.stdout + done.stderr
    return printed


TEARS = """
import signal, torch
tensors = [torch.zeros(256) for _ in range(2000)]
seen = []
def handler(number, frame):
    seen.append(len({tensor[0].item() for tensor in tensors}))
    if len(seen) < 50:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.01)
while len(seen) < 50:
    torch._foreach_add_(tensors, 1)
print(max(seen))
"""


def test_a_handler_never_sees_an_operation_half_done(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    """A checkpoint that it saved had some tensors of one step, and some of the next."""
    assert same(gpushare, plain, tmp_path, TEARS) == "1\n"


STEPS = """
import signal, torch
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(300)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=True)
steps, saved = 0, []
def handler(number, frame):
    saved.append({name: value.clone() for name, value in model.state_dict().items()})
    if len(saved) < 10:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
states = []
for parameter in model.parameters():
    parameter.grad = torch.ones_like(parameter)
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.02)
first = {name: value.clone() for name, value in model.state_dict().items()}
while len(saved) < 10:
    optimizer.step()
def moved(state):
    return {round((first[name] - value).mean().item(), 2) for name, value in state.items()}
print([len(moved(state)) for state in saved])
"""


def test_what_a_handler_saves_is_of_one_step(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    assert same(gpushare, plain, tmp_path, STEPS) == f"{[1] * 10}\n"


COMPUTES = """
def waits_for_it():
    later()
    while not log: pass
waits_for_it()
print(log)
def fail(number, frame):
    raise ValueError("of a handler")
signal.signal(signal.SIGUSR1, fail)
import traceback
def loops():
    later()
    while True: pass
def sleeps():
    later()
    time.sleep(1000)
def counts():
    later()
    for number in iter(int, 1): number + 1
for function in loops, sleeps, counts:
    try:
        function()
    except ValueError:
        # Of a wait it comes without the handler's own lines. Which part of a line is marked is chance.
        told = traceback.format_exc().splitlines()[:5 if function is sleeps else None]
        print(*[line for line in told if set(line) - set(" ^~")])
signal.signal(signal.SIGUSR1, handler)
later()
try:
    while True:
        try:
            signal.signal(signal.SIGUSR2, lambda *_: sys.exit(3))
            later(1.5, signal.SIGUSR2)
            sum(number for number in iter(int, 1))
        finally:
            print(log)
except SystemExit as end:
    print(end.code)
"""


def test_a_script_that_computes_is_interrupted_at_a_line(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    out = same(gpushare, plain, tmp_path, SEEN + COMPUTES)
    assert out.startswith("[(10, True, 'waits_for_it')]\n") and out.count("in fail") == 2


WAITS = {
    "sleep": "time.sleep(SECONDS)",
    "lock": "threading.Timer(SECONDS, lock.release).start(); lock.acquire()",
    "event": "threading.Timer(SECONDS, event.set).start(); event.wait()",
    "queue": "threading.Timer(SECONDS, items.put, (1,)).start(); items.get()",
    "simple": "threading.Timer(SECONDS, simple.put, (1,)).start(); simple.get()",
    "select": "select.select([], [], [], SECONDS)",
    "child": "subprocess.run(['sleep', 'SECONDS'], check=True)",
    "output": "subprocess.check_output(['sleep', 'SECONDS'])",
    "read": "threading.Timer(SECONDS, os.write, (ends[1], b'x')).start(); os.read(ends[0], 1)",
    "join": "threading_thread = threading.Thread(target=time.sleep, args=(SECONDS,)); threading_thread.start(); "
    "threading_thread.join()",
}
# Those for a lock: from Python 3.14 on handlers run beside the main thread, once it has stood still there.
BESIDE = {"lock", "event", "queue", "simple"} if sys.version_info >= (3, 14) else set()
IN_WAITS = """
import queue, select
event, items, simple, ends, lock = threading.Event(), queue.Queue(), queue.SimpleQueue(), os.pipe(), threading.Lock()
lock.acquire()
times = []
def handler(number, frame):
    times.append(time.monotonic() - begun)
    log.append(threading.current_thread() is threading.main_thread())
signal.signal(signal.SIGUSR1, handler)
"""
ONE_WAIT = """
later()
begun = time.monotonic()
WAIT
print("NAME", IN_MAIN, times[0] < SECONDS - 0.1, SECONDS - 0.01 < time.monotonic() - begun < 60)
log.clear(); times.clear()
"""


def one_wait(name: str) -> str:
    in_main, seconds = ("len(log) * [True]", "5") if name in BESIDE else ("log", "1.5")
    text = ONE_WAIT.replace("WAIT", WAITS[name]).replace("NAME", name)
    return text.replace("IN_MAIN", in_main).replace("SECONDS", seconds)


def test_a_handler_runs_in_a_wait_which_goes_on(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    out = same(gpushare, plain, tmp_path, SEEN + IN_WAITS + "".join(map(one_wait, WAITS)))
    assert out == "".join(f"{name} [True] True True\n" for name in WAITS)


NESTED = """
def second(number, frame):
    log.append(("second", frame.f_code.co_name))
def first(number, frame):
    log.append("first")
    later(0.05, signal.SIGUSR2)
    while len(log) < 2: pass
    later(0.05, signal.SIGUSR2)
    time.sleep(0.5)
    log.append("end of first")
signal.signal(signal.SIGUSR1, first)
signal.signal(signal.SIGUSR2, second)
def run():
    later()
    while "end of first" not in log: pass
run()
print(log)
"""


def test_a_handler_is_interrupted_by_another_one(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    assert same(gpushare, plain, tmp_path, SEEN + NESTED).count("'second', 'first'") == 2


TRACED = """
lines, calls = set(), set()
def trace(frame, event, argument):
    if frame.f_code.co_filename == __file__:
        (lines if event == "line" else calls).add((frame.f_code.co_name, frame.f_lineno))
    return trace
other = []
def trace_other(frame, event, argument):
    other.append(event)
    return trace_other
def elsewhere():
    sys.settrace(trace_other)
    while not log: pass
    print(sys.gettrace() is trace_other)
def run():
    thread = threading.Thread(target=elsewhere)
    thread.start()
    later()
    count = 0
    while not log:
        count += 1
    thread.join()
    print(sys.gettrace() is trace)
sys.settrace(trace)
run()
sys.settrace(None)
print(log, ("handler", 5) in lines, ("handler", 4) in calls, {name for name, _ in lines}, len(other) > 3)
"""


def test_what_traces_a_script_goes_on(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SEEN + TRACED)
    done = gpushare("run", "script.py")
    printed = [line.removeprefix("script | ") for line in done.stdout.splitlines() if "script | " in line]
    assert printed[:2] == ["True", "True"], done.stdout
    assert printed[2].startswith("[(10, True, 'run')] True True {") and printed[2].endswith("} True")


COMPILED = """
import torch
net = torch.nn.Linear(8, 8)
@torch.compile(backend="eager")
def step(x):
    return net(x).relu().sum()
@torch.compile(backend="eager")
def other(x):  # in the midst of its guards a function can't be called again
    return net(x).relu().sum()
def again(number, frame):
    handler(number, frame)
    with torch.no_grad():
        log.append(float(other(torch.ones(2, 8))) == float(net(torch.ones(2, 8)).relu().sum()))
    if len(log) < 40:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
signal.signal(signal.SIGALRM, again)
right = set()
with torch.no_grad():
    step(torch.ones(4, 8)), other(torch.ones(2, 8))  # compiled before any handler calls it
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    while len(log) < 40:
        x = torch.randn(4, 8)
        right.add(torch.equal(step(x), net(x).relu().sum()))
print(right, set(log[1::2]), {entry[1] for entry in log[::2]})
"""


def test_handlers_run_beside_compiled_code(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    assert same(gpushare, plain, tmp_path, SEEN + COMPILED) == "{True} {True} {True}\n"


def begin(folder: Path, *scripts: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*console(), "run", *scripts, "--log-dir", "logs"],
        cwd=folder,
        env=environment(folder),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def wait_for(run: subprocess.Popen[str], *paths: Path) -> None:
    while not all(path.exists() for path in paths):
        assert run.poll() is None, run.communicate()
        time.sleep(0.01)


# Its iteration is open while it sleeps.
HOLDS = """
import pathlib, time, torch
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    loss = model(torch.randn(8, 64)).square().mean()
    if step == 0:
        pathlib.Path("open").touch()
        while not pathlib.Path("saved").exists():
            time.sleep(0.05)
    loss.backward(); optimizer.step(); optimizer.zero_grad()
"""
AT_A_DOOR = """
import pathlib, signal, threading, time, torch
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
came = []
def save(number, frame):
    came.append(number)
    torch.save(model.state_dict(), "model.pt")
    print("saved", frame.f_code.co_name, flush=True)
    pathlib.Path("saved").touch()
signal.signal(signal.SIGUSR1, save)
while not pathlib.Path("open").exists():
    time.sleep(0.01)
pathlib.Path("ready").touch()
for step in range(4):
    loss = model(torch.randn(8, 64)).square().mean()
    loss.backward(); optimizer.step(); optimizer.zero_grad()
print("trained", came)
"""


def test_a_handler_runs_while_its_script_waits_at_a_door(tmp_path: Path) -> None:
    """Else it would come when the other job lets the script go on."""
    (tmp_path / "holds.py").write_text(HOLDS)
    (tmp_path / "waits.py").write_text(AT_A_DOOR)
    run = begin(tmp_path, "holds.py", "waits.py")
    wait_for(run, tmp_path / "open", tmp_path / "ready")
    time.sleep(1)
    run.send_signal(signal.SIGUSR1)
    out, _ = run.communicate(timeout=60)
    assert run.returncode == 0, out
    printed = (tmp_path / "logs" / "waits.out").read_text()
    assert printed.startswith("saved ") and printed.endswith("\ntrained [10]\n") and printed.count("\n") == 2


ENDS = """
import pathlib, signal, sys, time
def save(number, frame):
    time.sleep(0.5)
    print("saved", flush=True)
    sys.exit(7)
signal.signal(signal.SIGTERM, save)
def train():
    pathlib.Path("up").touch()
    WAIT
train()
"""


@pytest.mark.parametrize(
    "wait",
    ["while True: pass", "time.sleep(1000)", "while True: [len(str(number)) for number in range(1000)]"],
)
def test_a_handler_ends_its_script(wait: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(ENDS.replace("WAIT", wait))
    run = begin(tmp_path, "script.py")
    wait_for(run, tmp_path / "up")
    run.send_signal(signal.SIGTERM)
    out, _ = run.communicate(timeout=60)
    assert run.returncode != 0 and (tmp_path / "logs" / "script.out").read_text() == "saved\n", out


FORKS = """
def run():
    later(0.3)
    for _ in range(30):
        if (child := os.fork()) == 0:
            os._exit(len(log) > 1)
        assert os.waitpid(child, 0)[1] == 0
        time.sleep(0.02)
    return len(log)
print(run())
"""


def test_a_forked_child_has_none_of_its_parents(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    assert same(gpushare, plain, tmp_path, SEEN + FORKS) == "1\n"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="before there is no such tool")
def test_a_tool_of_the_scripts_own_is_left_alone(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    text = """
sys.monitoring.use_tool_id(4, "mine")
later()
while not log: pass
later()
time.sleep(0.5)
print(sys.monitoring.get_tool(4), sys.monitoring.get_tool(3), len(log))
"""
    assert same(gpushare, plain, tmp_path, SEEN + text) == "mine None 2\n"
