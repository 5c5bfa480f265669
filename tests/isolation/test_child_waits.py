"""Waits for any child, and psutil's list of them: each job has its own."""

from pathlib import Path

from conftest import Run

REAPS = """
import os
for i in (2, 3):
    if os.fork() == 0:
        __import__('time').sleep(i)
        os._exit(i)
try:
    while True:
        pid, status = os.wait()
        print('child ended with', os.waitstatus_to_exitcode(status))
except ChildProcessError:
    print('all ended')
"""
STARTS = """
import multiprocessing, subprocess, sys, time
time.sleep(0.5)
print([subprocess.run(['sh', '-c', 'exit 3']).returncode for _ in range(10)])
process = multiprocessing.get_context('fork').Process(target=sys.exit, args=(7,))
process.start()
process.join()
print(process.exitcode)
"""
KINDS = """
import os, signal, threading, time

def child(code, seconds=0.0):
    pid = os.fork()
    if pid == 0:
        time.sleep(seconds)
        os._exit(code)
    return pid

ENDED = os.P_ALL, 0, os.WEXITED
first = child(5, 0.3)
print(os.waitpid(-1, os.WNOHANG), os.wait4(-1, os.WNOHANG)[:2], os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG))
seen = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
print(seen.si_pid == first, seen.si_status, os.wait() == (first, 5 << 8))
second = child(6)
pid, status, usage = os.wait3(0)
print(pid == second, status == 6 << 8, usage.ru_utime >= 0)
os.waitpid(child(7), 0)
for wait in (os.wait, lambda: os.waitpid(0, 0), lambda: os.wait4(-1, os.WNOHANG), lambda: os.waitid(*ENDED)):
    try:
        wait()
    except ChildProcessError as error:
        print(error)
third = child(8)
os.waitid(os.P_PID, third, os.WEXITED | os.WNOWAIT)
try:
    os.waitid(os.P_ALL, 0, os.WSTOPPED | os.WNOHANG)
except ChildProcessError as error:
    print(error, os.wait() == (third, 8 << 8))
long = child(0, 50)
threading.Timer(0.2, lambda: child(9)).start()
print(os.waitstatus_to_exitcode(os.waitpid(-1, 0)[1]))
os.kill(long, 9)
print(os.waitid(os.P_PGID, os.getpgrp(), os.WEXITED).si_status)
os.posix_spawn('/bin/sh', ['sh', '-c', 'exit 4'], os.environ)
print(os.waitstatus_to_exitcode(os.wait()[1]))
ends = []

def reap(*_):
    try:
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ends.append(os.waitstatus_to_exitcode(found[1]))
    except ChildProcessError:
        pass

signal.signal(signal.SIGCHLD, reap)
for code in range(3):
    child(code)
while len(ends) < 3:
    time.sleep(0.05)
print(sorted(ends))
"""
KILLS = """
import psutil, subprocess, time
one = subprocess.Popen(['sleep', '60'])
two = subprocess.Popen('sleep 50; true', shell=True)
while len(psutil.Process().children(recursive=True)) < 3:
    time.sleep(0.05)
print(sorted(child.name() for child in psutil.Process().children()))
all = psutil.Process().children(recursive=True)
print(sorted(child.name() for child in all))
for child in all:
    child.kill()
print(one.wait(), two.wait())
"""
IS_KILLED = "import subprocess; print(subprocess.run('sleep 3; echo child done', shell=True).returncode)"
SCRIPTS = {"reaps": REAPS, "starts": STARTS, "kinds": KINDS, "kills": KILLS, "is_killed": IS_KILLED}


def test_children_are_those_of_the_job(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    for name, text in SCRIPTS.items():
        (tmp_path / f"{name}.py").write_text(text)
    done = gpushare("run", *(f"{name}.py" for name in SCRIPTS), "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    for name in SCRIPTS:
        assert (tmp_path / "logs" / f"{name}.out").read_text() == plain(f"{name}.py").stdout, name
