"""The part of the GPU check that runs whole jobs: its machinery on the CPU, where nothing of a GPU is said."""

import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

# Before scripts/bench, which has a gpu.py.
sys.path.insert(0, str(Path(__file__).parent.parent.parent / "scripts"))
from gpu import jobs, programs
from gpu.jobs import Case, Machine
from gpu.runner import Row

SCRIPTS = Path(__file__).parent.parent.parent / "scripts" / "gpu" / "scripts"


UNDER_GPUSHARE = "'gpushare.host' in open('/proc/self/cmdline').read()"


def rows(*cases: Case, limit_s: float = 200) -> list[Row]:
    """In the order of the cases; they come as they end."""
    machine = Machine("cpu", "--scale 0.02 --steps 3", time.monotonic() + limit_s)
    names = [one.name for one in cases]
    return sorted(jobs.run_cases(cases, machine), key=lambda row: names.index(row.name))


def case(name: str) -> Case:
    return next(one for one in jobs.CASES if one.name == name)


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("MKL_CBWR", "COMPATIBLE")


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """On a GPU the check builds the shim into the tree and runs that; here the package is installed, and neither
    PYTHONPATH nor the working directory must lead to the tree's."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.setattr(programs, "SITE", elsewhere)
    monkeypatch.chdir(elsewhere)


def test_jobs_together_print_what_each_prints_alone() -> None:
    (row,) = rows(case("three_jobs"))
    assert row.verdict == "true", row
    assert len(row.claims) == 6 and row.figures["pool_peak_bytes"] > 0


def test_what_was_never_side_by_side_is_not_checked() -> None:
    assert jobs.never_together({"jobs": [1], "overlap_s": 0.0}) == ""
    assert jobs.never_together({"jobs": [1, 2], "overlap_s": 0.1}) == ""
    assert "never had iterations at the same time" in jobs.never_together({"jobs": [1, 2], "overlap_s": 0.0})


def test_what_needs_a_gpu_is_not_checked_without_one() -> None:
    (row,) = rows(case("streams"))
    assert (row.verdict, row.why) == ("not checked", "it needs a GPU")


def test_what_differs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tells.py").write_text(
        "import threading\nprint('same')\nprint(threading.current_thread().native_id)\n"
    )
    (tmp_path / "where.py").write_text(f"print('same')\nprint('shared' if {UNDER_GPUSHARE} else 'alone')\n")
    monkeypatch.setattr(jobs, "SCRIPTS", tmp_path)
    unsteady, different = rows(Case("unsteady", "", ("tells.py",)), Case("different", "", ("where.py",)))
    assert unsteady.verdict == "not checked" and "itself does not print the same" in unsteady.why
    assert different.verdict == "false"
    told = [what for what, holds in different.claims.items() if not holds]
    assert told == ["where prints the same; line 2 is 'shared' instead of 'alone'"]


HANGS = f"""
import time
def waits_for_ever():
    if {UNDER_GPUSHARE}: time.sleep(100)
waits_for_ever()
"""


@pytest.mark.parametrize(("limit_s", "part_s"), [(15, 200), (100, 20)], ids=["its own limit", "its part"])
def test_what_hangs_is_false_and_says_where(
    limit_s: float, part_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hangs.py").write_text(HANGS)
    monkeypatch.setattr(jobs, "SCRIPTS", tmp_path)
    monkeypatch.setattr(jobs, "LEAST_S", 1.0)
    (row,) = rows(Case("hangs", "", ("hangs.py",), limit_s=limit_s, enough_s=10), limit_s=part_s)
    (claim,) = row.claims
    assert row.verdict == "false" and claim.startswith("gpushare ends within 1"), row
    assert ", line " in claim, "the row has where a thread is"
    assert "in waits_for_ever" in row.log and "most recent call first" in row.log


def test_who_fails_is_told_with_its_traceback_and_not_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = (
        f"import time\nprint(time.monotonic_ns())\nif {UNDER_GPUSHARE}: raise ValueError('the moon fell')\n"
    )
    (tmp_path / "fails.py").write_text(fails)
    monkeypatch.setattr(jobs, "SCRIPTS", tmp_path)
    (row,) = rows(Case("fails", "", ("fails.py",)))
    assert row.verdict == "false", "that it prints something else each time says nothing about a crash"
    (claim,) = row.claims
    assert "it ended with 1" in claim and "ValueError: the moon fell" in claim
    assert "Traceback" in row.log and "--- fails.err" in row.log


def test_who_fails_in_plain_python_is_told_with_its_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fails.py").write_text("raise ValueError('the moon fell')\n")
    monkeypatch.setattr(jobs, "SCRIPTS", tmp_path)
    (row,) = rows(Case("fails", "", ("fails.py",)))
    assert row.verdict == "not checked" and "plain python ended fails.py with 1" in row.why
    assert "Traceback" in row.log


def test_rows_are_told_as_they_end(monkeypatch: pytest.MonkeyPatch) -> None:
    told = threading.Event()

    def run_case(case: Case, *_: Any) -> None:
        assert case.name != "slow" or told.wait(30)

    monkeypatch.setattr(jobs, "_run_case", run_case)
    monkeypatch.setattr(jobs, "at_once", lambda: 2)
    cases = (Case("slow", "", ("no.py",)), Case("quick", "", ("no.py",)), Case("gpu", "", (), only_cuda=True))
    found = jobs.run_cases(cases, Machine("cpu", deadline=time.monotonic() + 60))
    assert [next(found).name, next(found).name] == ["gpu", "quick"]
    told.set()
    assert next(found).name == "slow"


def test_without_time_nothing_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(30)\n")
    monkeypatch.setattr(jobs, "SCRIPTS", tmp_path)
    (row,) = rows(Case("slow", "", ("slow.py",)), limit_s=0.5)
    assert row.verdict == "not checked" and row.why.startswith("no time was left")
    (row,) = rows(Case("slow", "", ("slow.py",), limit_s=0.5))
    assert row.verdict == "not checked" and "did not end slow.py within 0 s" in row.why


def test_what_the_end_of_the_time_cuts_is_not_false(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hangs.py").write_text(f"import time\nif {UNDER_GPUSHARE}: time.sleep(100)\n")
    monkeypatch.setattr(jobs, "SCRIPTS", tmp_path)
    monkeypatch.setattr(jobs, "LEAST_S", 1.0)
    (row,) = rows(Case("hangs", "", ("hangs.py",)), limit_s=6)
    assert row.verdict == "not checked" and row.why.startswith("no time was left: it was ended after"), row


def test_who_fails_has_a_peak_for_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fails.py").write_text(
        "import sys\nprint('peak_bytes', 1 << 30, file=sys.stderr)\nsys.exit(3)\n"
    )
    monkeypatch.setattr(jobs, "SCRIPTS", tmp_path)
    (row,) = rows(Case("fails", "", ("fails.py",), exit_code=1, share=2.0))
    assert row.verdict == "true" and row.figures["budget_bytes"] == 2 << 30


def test_what_is_said_without_the_bridge_is_what_is_looked_for() -> None:
    root = Path(__file__).parent.parent.parent
    readers = ("gpushare/framework/cuda_bridge.py", "scripts/bench/gpu_rows/running.py")
    assert all(jobs.NO_BRIDGE in (root / reader).read_text() for reader in readers)


def test_every_script_of_a_case_is_there() -> None:
    used = {job.split()[0] for one in jobs.CASES for job in one.jobs}
    assert used == {path.name for path in SCRIPTS.glob("*.py")} - {"options.py"}
