"""What is loaded before the host is started: a run begins that much later."""

import subprocess
import sys

LOADS = """
import sys
from gpushare import commands
assert commands.cli.get_command(None, {name!r})
print(*sorted({{".".join(name.split(".")[:2]) for name in sys.modules}}))
"""


def loaded(name: str) -> set[str]:
    told = subprocess.run([sys.executable, "-c", LOADS.format(name=name)], capture_output=True, check=True)
    return set(told.stdout.decode().split())


def test_a_run_starts_without_what_tells_of_it_later() -> None:
    assert not loaded("run") & {"rich", "gpushare.simulation", "gpushare.isolation", "gpushare.host", "torch"}


def test_what_a_plan_needs_comes_with_it() -> None:
    assert {"rich", "gpushare.simulation"} <= loaded("plan")
