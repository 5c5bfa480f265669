"""The file of the waits."""

import os
from pathlib import Path

from gpushare.launcher import explain
from gpushare.telemetry.decisions import Wait


def test_a_job_is_named_by_the_bytes_of_its_script(tmp_path: Path) -> None:
    wait = Wait(
        asked_ns=2 * 10**9,
        waited_ns=10**9,
        predicted_ns=None,
        bytes=0,
        iteration=3,
        account=1,
        for_account=0,
        reason=1,
        refused=False,
    )
    explain.write(tmp_path / "waits.tsv", [wait], [os.fsdecode(b"caf\xe9")], start_ns=0)
    assert b"\t3\tdoor" in (tmp_path / "waits.tsv").read_bytes()
    assert b"\tcaf\xe9\t" in (tmp_path / "waits.tsv").read_bytes()
