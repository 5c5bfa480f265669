"""Ctrl-C, a killed host, a killed parent."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from conftest import environment, outgrow

pytestmark = pytest.mark.usefixtures("train")


_started: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    """A run that a test has given up would take the processor from all tests after it."""
    yield
    while _started:
        _started.pop().kill()


def start(tmp_path: Path, *arguments: str, stdin: int | None = None) -> subprocess.Popen[str]:
    command = [str(Path(sys.executable).with_name("gpushare")), "run", *arguments]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment(tmp_path),
        text=True,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    _started.append(process)
    return process


def host_of(process: subprocess.Popen[str], line: str) -> psutil.Process:
    """The host, once a job has printed `line`."""
    assert process.stdout
    for text in process.stdout:
        if line in text:
            break
    (host,) = psutil.Process(process.pid).children()
    return host


def test_ctrl_c_interrupts_the_jobs_and_keeps_the_summary(tmp_path: Path) -> None:
    process = start(tmp_path, "train.py 1000000", "--summary", "s.json")
    host = host_of(process, "train | 5")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, out + err
    assert not host.is_running()
    (job,) = json.loads((tmp_path / "s.json").read_text())["jobs"]
    assert job["status"] == "interrupted"
    assert "KeyboardInterrupt" in out


def test_a_killed_host_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text(
        "import subprocess, time\nsubprocess.Popen(['sleep', '1000'])\nprint('up', flush=True)\ntime.sleep(1000)\n"
    )
    process = start(tmp_path, "child.py", "--log-dir", "logs")
    host = host_of(process, "child | up")
    (grandchild,) = host.children()
    host.kill()
    _, err = process.communicate(timeout=120)
    assert process.returncode == 4
    assert "the host process died (signal 9) while it ran: child" in err
    assert (tmp_path / "logs" / "child.out").read_text() == "up\n"
    assert not grandchild.is_running()


def test_the_host_ends_with_its_parent(tmp_path: Path) -> None:
    process = start(tmp_path, "train.py 1000000")
    host = host_of(process, "train | 5")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    deadline = time.monotonic() + 10
    while host.is_running() and host.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not host.is_running() or host.status() == psutil.STATUS_ZOMBIE


def test_a_job_that_sleeps_is_named_and_ended(tmp_path: Path) -> None:
    (tmp_path / "sleeps.py").write_text(
        "import threading\nlock = threading.Lock()\nprint('up', flush=True)\nlock.acquire()\nlock.acquire()\n"
    )
    process = start(tmp_path, "sleeps.py", "train.py 1000000", "--summary", "s.json")
    host = host_of(process, "sleeps | up")
    time.sleep(2)  # it has said so, but it may have to wait for the GIL before it really sleeps
    asked = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=180)
    assert 29 < time.monotonic() - asked < 55
    assert process.returncode == 130
    assert "still running 5 s after Ctrl-C: sleeps; they are ended 30 s after it" in err
    assert not host.is_running()
    jobs = json.loads((tmp_path / "s.json").read_text())["jobs"]
    assert {j["name"]: j["status"] for j in jobs} == {"sleeps": "interrupted", "train": "interrupted"}


WAITS = {
    "sleep": "time.sleep(1000)",
    "event": "threading.Event().wait()",
    "timed": "threading.Event().wait(1000)",
    "queue": "queue.Queue().get()",
    "future": "futures.ThreadPoolExecutor(1).submit(over.wait).result()",
    "select": "select.select([], [], [], 1000)",
    "poll": "poll = select.poll(); poll.register(ends[0]); poll.poll()",
    "child": "subprocess.run(['sleep', '1000'])",
    "output": "subprocess.check_output(['sleep', '1000'])",
    "read": "os.read(ends[0], 1)",
    "lines": "[line for line in open(ends[0])]",
    "receive": "sockets[0].recv(1)",
    "asyncio": "asyncio.run(asyncio.sleep(1000))",
}
IN_A_WAIT = """
import asyncio, os, queue, select, socket, subprocess, threading, time
from concurrent import futures
over, ends, sockets = threading.Event(), os.pipe(), socket.socketpair()
print('up', flush=True)
try:
    wait()
except KeyboardInterrupt:
    begun = time.monotonic()
    time.sleep(0.2)  # it has come: this is a wait as any other
    print('saved', time.monotonic() - begun >= 0.2, flush=True)
over.set()
"""


def test_ctrl_c_ends_the_interpreters_waits(tmp_path: Path) -> None:
    """As under plain python, so that a script can save what it has."""
    for name, wait in WAITS.items():
        (tmp_path / f"in_{name}.py").write_text(IN_A_WAIT.replace("wait()", wait))
    scripts = [f"in_{name}.py" for name in WAITS]
    process = start(tmp_path, *scripts, "--summary", "s.json", "--log-dir", "logs")
    outs = [tmp_path / "logs" / f"in_{name}.out" for name in WAITS]
    while not all(out.exists() and out.stat().st_size for out in outs):
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert {each.stem: each.read_text() for each in outs} == {f"in_{n}": "up\nsaved True\n" for n in WAITS}
    assert {j["status"] for j in json.loads((tmp_path / "s.json").read_text())["jobs"]} == {"ok"}
    assert "still running" not in err


def after_ctrl_c(tmp_path: Path) -> str:
    """What `joins.py` prints, interrupted in its wait."""
    process = start(tmp_path, "joins.py")
    host_of(process, "joins | up")
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    return out


def test_a_thread_whose_end_is_no_longer_waited_for_goes_on(tmp_path: Path) -> None:
    (tmp_path / "joins.py").write_text(
        "import threading\nover = threading.Event()\nthread = threading.Thread(target=over.wait)\nthread.start()\n"
        "print('up', flush=True)\ntry:\n    thread.join()\nexcept KeyboardInterrupt:\n"
        "    print('goes on', thread.is_alive(), thread in threading.enumerate())\n"
        "over.set()\nthread.join()\nprint('ended', not thread.is_alive())\n"
    )
    out = after_ctrl_c(tmp_path)
    assert "joins | goes on True True" in out and "joins | ended True" in out, out


def test_a_wait_that_goes_on_does_not_spin(tmp_path: Path) -> None:
    (tmp_path / "joins.py").write_text(
        "import threading, time\nlock = threading.Lock()\nlock.acquire()\nprint('up', flush=True)\n"
        "threading.Timer(6, lock.release).start()\nbegun = time.process_time()\ntry:\n    lock.acquire()\n"
        "except KeyboardInterrupt:\n    print('took', time.process_time() - begun < 1)\n"
    )
    assert "joins | took True" in after_ctrl_c(tmp_path)


def test_an_end_of_a_thread_is_waited_for_as_long_as_was_asked(tmp_path: Path) -> None:
    (tmp_path / "joins.py").write_text(
        "import threading, time\nover = threading.Event()\nthread = threading.Thread(target=over.wait)\n"
        "thread.start()\n"
        "spans = []\nfor limit in (0, -1, 0.25, None, 0, 5):\n    begun = time.monotonic()\n"
        "    if limit is None:\n        threading.Timer(0.5, over.set).start()\n"
        "    thread.join(limit)\n    spans.append((time.monotonic() - begun, thread.is_alive()))\n"
        "assert [alive for _, alive in spans] == [True] * 3 + [False] * 3, spans\n"
        "assert 0.25 <= spans[2][0] and 0.4 < spans[3][0] and spans[5][0] < 4, spans\n"
    )
    process = start(tmp_path, "joins.py")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err


def test_a_ctrl_c_that_a_wrapper_passes_on_is_one(tmp_path: Path) -> None:
    (tmp_path / "saves.py").write_text(
        "import time\nprint('up', flush=True)\ntry:\n    time.sleep(1000)\n"
        "except KeyboardInterrupt:\n    time.sleep(1)\n    print('saved')\n"
    )
    process = start(tmp_path, "saves.py")
    host_of(process, "saves | up")
    time.sleep(1)
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        time.sleep(0.01)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "saves | saved" in out, out + err


def test_a_second_ctrl_c_ends_a_job_that_reads(tmp_path: Path) -> None:
    (tmp_path / "reads.py").write_text("print('up', flush=True)\nprint('got', input())\n")
    process = start(tmp_path, "reads.py", "--summary", "s.json", stdin=subprocess.PIPE)
    host = host_of(process, "reads | up")
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    time.sleep(1)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)  # the first one ends it only 30 s later
    assert process.returncode == 130, out + err
    assert not host.is_running()
    assert json.loads((tmp_path / "s.json").read_text())["jobs"][0]["status"] == "interrupted"


def test_a_grandchild_in_a_session_of_its_own_is_ended(tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text(
        "import subprocess, time\n"
        "subprocess.Popen(['setsid', 'sh', '-c', 'sleep 1234 & sleep 1235'])\n"
        "time.sleep(0.5)\nprint('up', flush=True)\ntime.sleep(1000)\n"
    )
    process = start(tmp_path, "child.py")
    host = host_of(process, "child | up")
    below = host.children(recursive=True)
    assert len(below) >= 3
    host.kill()
    process.communicate(timeout=120)
    assert process.returncode == 4
    assert not [p for p in below if p.is_running()]


def test_exit_handlers_run_after_an_interrupt(tmp_path: Path) -> None:
    (tmp_path / "handler.py").write_text(
        "import atexit\natexit.register(print, 'bye')\nprint('up', flush=True)\nwhile True: pass\n"
    )
    process = start(tmp_path, "handler.py", "--log-dir", "logs")
    host_of(process, "handler | up")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 130
    assert (tmp_path / "logs" / "handler.out").read_text() == "up\nbye\n"


def test_started_with_sigint_ignored(tmp_path: Path) -> None:
    """As by nohup, or with & in a shell script."""
    (tmp_path / "asks.py").write_text(
        "import os, signal, subprocess, sys\n"
        "print(signal.getsignal(signal.SIGINT) == signal.SIG_IGN, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "command = 'import signal; print(signal.getsignal(signal.SIGINT) == signal.SIG_IGN)'\n"
        "subprocess.run([sys.executable, '-c', command], check=True)\n"
        "print('ready', flush=True)\n"
        "input()\n"
        "print('went on')\n"
    )
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = start(tmp_path, "asks.py", stdin=subprocess.PIPE)
    finally:
        signal.signal(signal.SIGINT, before)
    assert process.stdin and process.stdout
    lines = []
    while not any("ready" in line for line in lines):
        lines.append(process.stdout.readline())
    assert [line.strip() for line in lines] == ["asks | True", "asks | True", "asks | ready"]
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    out, err = process.communicate("\n", timeout=120)
    assert process.returncode == 0, out + err
    assert "asks | went on" in out


UNDER_NOHUP = """
import os, signal, subprocess, sys
print(signal.getsignal(signal.SIGHUP), signal.getsignal(signal.SIGPIPE), signal.getsignal(signal.SIGTERM), __file__)
os.kill(os.getpid(), signal.SIGHUP)
command = "import signal; print(signal.getsignal(signal.SIGHUP), signal.getsignal(signal.SIGTERM))"
def child():
    subprocess.run([sys.executable, "-c", command], check=True)
child()
signal.signal(signal.SIGHUP, lambda *_: print("hung up", flush=True))
os.kill(os.getpid(), signal.SIGHUP)
child()
print(signal.signal(signal.SIGHUP, signal.SIG_IGN) is not None)
child()
"""


def test_what_is_ignored_from_the_start_is_so_in_jobs_and_what_they_start(tmp_path: Path) -> None:
    """As by nohup. What a job sets instead is for its children as in plain python."""
    (tmp_path / "asks.py").write_text(UNDER_NOHUP)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        command = [sys.executable, "./asks.py"]
        alone = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
        process = start(tmp_path, "./asks.py")
        out, err = process.communicate(timeout=120)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert process.returncode == 0, out + err
    assert [line.removeprefix("asks | ") for line in out.splitlines() if line.startswith("asks | ")] == [
        *alone.splitlines()
    ]


TERMINATED = """
import signal, sys, time, torch
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
model = torch.nn.Linear(64, 64)
print('up', flush=True)
while not asked:
    time.sleep(0.01)
torch.save(model.state_dict(), 'saved.pt')
print('saved', flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_gpushare_reaches_the_scripts(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "saves.py").write_text(TERMINATED.replace("SIGTERM", number.name))
    process = start(tmp_path, "saves.py", "train.py 1000000", "--summary", "s.json", "--log-dir", "logs")
    host = host_of(process, "saves | up")
    while not (tmp_path / "logs" / "train.out").stat().st_size:
        time.sleep(0.05)
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 128 + number, out + err
    assert not host.is_running()
    jobs = {j["name"]: j for j in json.loads((tmp_path / "s.json").read_text())["jobs"]}
    assert (jobs["saves"]["status"], jobs["saves"]["exit_code"]) == ("ok", 0)
    assert (jobs["train"]["status"], jobs["train"]["exit_code"]) == ("interrupted", 128 + number)
    assert (tmp_path / "saved.pt").exists() and "saves | saved" in out


def test_a_signal_to_the_host_itself_reaches_all_where_one_handles_it(tmp_path: Path) -> None:
    (tmp_path / "saves.py").write_text(TERMINATED)
    process = start(tmp_path, "saves.py", "train.py 1000000", "--summary", "s.json", "--log-dir", "logs")
    host = host_of(process, "saves | up")
    while not (tmp_path / "logs" / "train.out").stat().st_size:
        time.sleep(0.05)
    host.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1, out + err
    jobs = {j["name"]: j for j in json.loads((tmp_path / "s.json").read_text())["jobs"]}
    assert (jobs["saves"]["status"], jobs["saves"]["exit_code"]) == ("ok", 0)
    assert (jobs["train"]["status"], jobs["train"]["exit_code"]) == ("interrupted", 143)


SLEEPS = {
    "sleeps": "import time\nprint('up', end='', flush=True)\ntime.sleep(1000)\n",
    "waits": "import threading\nprint('up')\nthreading.Event().wait()\n",
    "joins": (
        "import threading, time\nthread = threading.Thread(target=time.sleep, args=(1000,))\n"
        "thread.start()\nprint('up')\nthread.join()\n"
    ),
    "reads": "import os\nprint('up')\nos.read(os.pipe()[0], 1)\n",
}


def test_who_handles_a_signal_that_all_processes_get_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "told.py").write_text(
        "import signal, time\ntold = []\nsignal.signal(signal.SIGTERM, lambda *_: told.append(1))\nprint('up')\n"
        "while not told:\n    time.sleep(0.01)\ntime.sleep(1)\nprint('told', len(told))\n"
    )
    process = start(tmp_path, "told.py")
    host = host_of(process, "told | up")
    time.sleep(0.5)
    host.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 143 and "told | told 1" in out, out + err


def test_ctrl_z_stops_the_jobs_too(tmp_path: Path) -> None:
    (tmp_path / "forks.py").write_text(
        "import subprocess, time\nprint('up', flush=True)\nsubprocess.run(['sleep', '3'])\nprint('done')\n"
    )
    process = start(tmp_path, "forks.py", "--summary", "s.json")
    host = host_of(process, "forks | up")
    while not host.children():
        time.sleep(0.05)
    everybody = [psutil.Process(process.pid), host, *host.children()]
    process.send_signal(signal.SIGTSTP)
    while not all(each.status() == psutil.STATUS_STOPPED for each in everybody):
        time.sleep(0.05)
    time.sleep(1)
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err
    assert "forks | done" in out and "of it stopped by Ctrl-Z" in out
    summary = json.loads((tmp_path / "s.json").read_text())
    assert summary["duration_s"] > summary["stopped_s"] >= 1 and summary["serial_estimate_s"] is None


def test_who_has_no_handler_and_sleeps_is_ended(tmp_path: Path) -> None:
    for name, text in SLEEPS.items():
        (tmp_path / f"{name}.py").write_text(text)
    late = (
        "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: (time.sleep(7), sys.exit(3)))\n"
    )
    (tmp_path / "late.py").write_text(f"{late}print('up')\nfor _ in range(10000):\n    time.sleep(0.1)\n")
    names = [*SLEEPS, "late"]
    process = start(tmp_path, *(f"{name}.py" for name in names), "--log-dir", "logs", "--summary", "s.json")
    while not all((tmp_path / "logs" / f"{name}.out").exists() for name in names):
        time.sleep(0.05)
    while not all((tmp_path / "logs" / f"{name}.out").stat().st_size for name in names):
        time.sleep(0.05)
    (host,) = psutil.Process(process.pid).children()
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 143, out + err
    assert not host.is_running()
    jobs = {j["name"]: j for j in json.loads((tmp_path / "s.json").read_text())["jobs"]}
    assert (jobs["late"]["status"], jobs["late"]["exit_code"]) == ("failed", 3)
    for name in SLEEPS:
        assert (jobs[name]["status"], jobs[name]["exit_code"]) == ("interrupted", 143)
        assert (tmp_path / "logs" / f"{name}.out").read_text().strip() == "up"
    assert "still running 5 s after SIGTERM: late; they handle it" in err


def test_a_child_that_ends_as_a_script_does_is_no_end_of_the_job(tmp_path: Path) -> None:
    (tmp_path / "forks.py").write_text(
        "import os, sys, time\npid = os.fork()\nif pid == 0:\n    sys.exit(5)\n"
        "print('child', os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)\ntime.sleep(1000)\n"
    )
    process = start(tmp_path, "forks.py", "train.py 1000000", "--summary", "s.json")
    host = host_of(process, "forks | child 5")
    time.sleep(1)
    host.kill()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 4, out + err
    jobs = json.loads((tmp_path / "s.json").read_text())["jobs"]
    assert {j["name"]: j["status"] for j in jobs} == {"forks": "lost", "train": "lost"}


def test_a_signal_that_asks_for_nothing_is_for_who_has_a_handler(tmp_path: Path) -> None:
    (tmp_path / "told.py").write_text(
        "import signal, time\nasked = []\nsignal.signal(signal.SIGUSR1, lambda *_: asked.append(1))\n"
        "print('up', flush=True)\nwhile not asked:\n    time.sleep(0.01)\n"
    )
    (tmp_path / "waits.py").write_text("import time\nprint('up', flush=True)\ntime.sleep(3)\n")
    process = start(tmp_path, "waits.py", "told.py")
    host_of(process, "told | up")
    process.send_signal(signal.SIGUSR1)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, out + err


def test_a_plan_that_is_interrupted_while_it_measures_goes_no_further(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("gpushare")), "plan", "sleeps.py", "train.py 1000000"]
    (tmp_path / "sleeps.py").write_text("print('up', flush=True)\nwhile True: pass\n")
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment(tmp_path), text=True, stderr=subprocess.PIPE
    )
    assert process.stderr
    for line in process.stderr:
        if "sleeps | up" in line:
            break
    process.send_signal(signal.SIGINT)
    rest = process.stderr.read()
    assert process.wait(timeout=120) == 130, rest
    assert "train has no saved profile" not in rest


# One is away while both are told.
OUTGROW = outgrow(
    first="""
heard = []
signal.signal(signal.SIGUSR1, lambda *_: None)
signal.signal(signal.SIGUSR2, lambda *_: heard.append(1))
""",
    at_ten="""
        print("grown", flush=True)
        while not heard:
            torch.zeros(1)
""",
)


def test_a_job_is_told_while_another_one_that_has_a_handler_is_away(tmp_path: Path) -> None:
    (tmp_path / "outgrow.py").write_text(OUTGROW)
    options = ("--budget", "170MiB", "--policy", "greedy", "--summary", "s.json")
    process = start(tmp_path, "outgrow.py a", "outgrow.py b", *options)
    host_of(process, "| grown")
    process.send_signal(signal.SIGUSR1)
    process.send_signal(signal.SIGUSR2)
    out, err = process.communicate(timeout=180)
    assert process.returncode == 0, out + err
    jobs = json.loads((tmp_path / "s.json").read_text())["jobs"]
    assert sum(job["copies_out"] for job in jobs) > 0


SAVES = """
import atexit, torch
atexit.register(lambda: print("atexit", flush=True))
net = torch.nn.Linear(10, 10)
print("up", flush=True)
try:
    for _ in range(2):
        torch.zeros(60 << 18)
except KeyboardInterrupt as error:
    torch.save(net.state_dict(), "saved.pt")
    print("saved", error.args, torch.zeros(4).sum().item(), flush=True)
finally:
    print(sum(1 for _ in range(100_000)), flush=True)
"""
KEEPS = """
import time, torch
kept = torch.zeros(60 << 18)
print("kept", flush=True)
try:
    while True:
        time.sleep(0.01)
except KeyboardInterrupt:
    time.sleep(3)  # what the other one waits for does not come meanwhile
"""


def test_who_waits_for_memory_is_interrupted_at_that_line(tmp_path: Path) -> None:
    """Not by an error of the allocation, behind which it would come somewhere in what the script does about that."""
    (tmp_path / "keeps.py").write_text(KEEPS)
    (tmp_path / "saves.py").write_text(SAVES)
    process = start(
        tmp_path, "keeps.py", "saves.py", "--budget", "100MiB", "--log-dir", "logs", "--summary", "s.json"
    )
    host_of(process, "keeps | kept")
    deadline = time.monotonic() + 60
    while "up" not in (tmp_path / "logs" / "saves.out").read_text() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, out + err
    assert (tmp_path / "saved.pt").exists()
    said = (tmp_path / "logs" / "saves.out").read_text()
    assert said == "up\nsaved () 0.0\n100000\natexit\n"
    waits = {
        job["name"]: job["memory_waits"] for job in json.loads((tmp_path / "s.json").read_text())["jobs"]
    }
    assert waits["saves"] == 1
    assert (tmp_path / "logs" / "saves.err").read_text() == ""


LEAVES = """
import signal, sys, time

def late(number, frame):
    raise TimeoutError("late")

signal.signal(signal.SIGALRM, late)
signal.setitimer(signal.ITIMER_REAL, float(sys.argv[1]))
try:
    import torch._dynamo
    time.sleep(10)
except TimeoutError as error:
    print(error)
"""
IMPORTS = """
import time
import torch._dynamo
time.sleep(1)
begun = time.monotonic()
import imaplib, mailbox, ftplib
print("quick" if time.monotonic() - begun < 10 else "slow")
"""


def test_what_interrupts_an_import_keeps_no_other_one_from_its_own(tmp_path: Path) -> None:
    """The lock of imports was never given back by who was told that it has it and, at once, that it is late."""
    (tmp_path / "imports.py").write_text(IMPORTS)
    (tmp_path / "leaves.py").write_text(LEAVES)
    late = [f"leaves.py {s}" for s in ("0.05", "0.15", "0.3")]
    process = start(tmp_path, "imports.py", *late, "--log-dir", "logs")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, out + err
    assert (tmp_path / "logs" / "imports.out").read_text() == "quick\n"
    for name in ("leaves", "leaves-2", "leaves-3"):
        assert (tmp_path / "logs" / f"{name}.out").read_text() == "late\n"


SECOND = """
import pathlib, threading, time, torch
from gpushare.isolation import context, interrupts
from gpushare.native import shim

job, cancel = context.current(), shim.cancel

def second(account):  # before the thread that waits has Python's lock again
    shim.cancel = cancel
    interrupts.send(job, TimeoutError, "late", ends_waits=False)
    cancel(account)

def first():
    time.sleep(1)
    shim.cancel = second
    interrupts.send(job, KeyboardInterrupt, ends_waits=True)

while not pathlib.Path("kept").exists():
    time.sleep(0.01)
threading.Thread(target=first).start()
try:
    torch.zeros(60 << 18)
except TimeoutError as error:
    print(error)
for _ in range(100):
    time.sleep(0.01)
torch.zeros(60 << 18)
print("waited", flush=True)
"""
KEEPS_A_WHILE = """
import pathlib, time, torch
kept = torch.zeros(60 << 18)
pathlib.Path("kept").touch()
time.sleep(5)
"""


def test_the_last_one_of_two_comes_where_the_first_one_has_ended_the_wait(tmp_path: Path) -> None:
    """And the job waits again."""
    (tmp_path / "keeps.py").write_text(KEEPS_A_WHILE)
    (tmp_path / "second.py").write_text(SECOND)
    process = start(tmp_path, "keeps.py", "second.py", "--budget", "100MiB", "--log-dir", "logs")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, out + err
    assert (tmp_path / "logs" / "second.out").read_text() == "late\nwaited\n"
