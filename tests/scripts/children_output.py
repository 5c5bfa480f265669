"""Programs that write to the script's output, its directory and its environment."""

import os
import subprocess
import sys

os.environ["GREETING"] = "good day"
os.makedirs("sub", exist_ok=True)
os.chdir("sub")
sys.stdout.flush()
subprocess.run(["sh", "-c", "echo $GREETING from $(basename $PWD)"], check=True)
subprocess.run(
    [sys.executable, "-c", "import os, sys; print(os.environ['GREETING'], file=sys.stderr)"], check=True
)
both = "echo to stdout; echo to stderr >&2"
subprocess.run(["sh", "-c", both], check=True, stdout=1, stderr=2)  # by their numbers
subprocess.run(["sh", "-c", both], check=True, stdout=2, stderr=1)
print(os.system("exit 3"), flush=True)
print(subprocess.check_output("pwd | xargs basename", shell=True, text=True).strip(), flush=True)
del os.environ["GREETING"]
subprocess.run(["sh", "-c", "echo [$GREETING]"], check=True)
pid = os.fork()
if pid == 0:
    os.write(1, b"child\n")
    os._exit(4)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
