"""Who goes first, who has to wait before it begins, and why they waited: through the console script."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import TRAIN, Run

from gpushare.scheduling.order import QUANTUM_S

MIB = 1 << 20
# Reads a tensor that it keeps, so that its residue counts.
KEEPING = "import torch\nkept = torch.ones({mib} << 18)\n" + TRAIN.format(rows=2_000)


@pytest.fixture(autouse=True)
def scripts(tmp_path: Path, train: None) -> None:
    (tmp_path / "wide.py").write_text("import torch\ntorch.manual_seed(1)\n" + TRAIN.format(rows=12_000))


def summary(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((tmp_path / "s.json").read_text())
    return found


def test_the_job_of_higher_priority_goes_first(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    jobs = ("wide.py 30", "wide.py 30", "--policy", "temporal", "--summary", "s.json", "--log-dir", "logs")
    assert gpushare("run", "wide.py 30", "--budget", "100MiB").returncode == 0  # leaves a profile
    done = gpushare("run", *jobs, "--budget", "150MiB", "--priority", "wide-2=5", "--explain")
    assert done.returncode == 0, done.stderr
    assert "order priority" in done.stderr
    low, high = summary(tmp_path)["jobs"]
    assert low["iterations"] == high["iterations"] == 30
    assert high["duration_s"] < 0.8 * low["duration_s"]
    assert low["waited_s"]["behind"] + low["waited_s"]["turn"] > 5 * sum(high["waited_s"].values())
    assert "forecast error" in done.stdout and "took turns" in done.stdout
    for name in ("wide", "wide-2"):
        assert (tmp_path / "logs" / f"{name}.out").read_text() == plain("wide.py", "30").stdout
    head, *waits = (tmp_path / "logs" / "waits.tsv").read_text().splitlines()
    assert head.split("\t")[:4] == ["asked_s", "waited_s", "forecast_s", "job"]
    seconds = {
        name: sum(float(w.split("\t")[1]) for w in waits if w.split("\t")[3] == name)
        for name in ("wide", "wide-2")
    }
    assert seconds["wide"] == pytest.approx(sum(low["waited_s"].values()), abs=0.01)
    assert seconds["wide-2"] == pytest.approx(sum(high["waited_s"].values()), abs=0.01)


def test_the_job_with_the_least_to_do_goes_first(gpushare: Run, tmp_path: Path) -> None:
    jobs = ("wide.py 60", "wide.py 20", "--policy", "temporal", "--order", "srtf", "--budget", "150MiB")
    for _ in range(2):  # how many iterations they do is known the second time
        done = gpushare("run", *jobs, "--summary", "s.json")
        assert done.returncode == 0, done.stderr
    long, short = summary(tmp_path)["jobs"]
    assert (long["iterations"], short["iterations"]) == (60, 20)
    assert sum(long["waited_s"].values()) > 3 * sum(short["waited_s"].values())


@pytest.mark.parametrize("order", ["fair", "srtf"])
def test_the_other_orders_change_no_result(gpushare: Run, plain: Run, tmp_path: Path, order: str) -> None:
    for _ in range(2):  # with a profile the second time
        done = gpushare(
            "run", "wide.py 12", "wide.py 15", "--budget", "110MiB", "--order", order, "--log-dir", "logs"
        )
        assert done.returncode == 0, done.stderr
        for name, steps in (("wide", "12"), ("wide-2", "15")):
            assert (tmp_path / "logs" / f"{name}.out").read_text() == plain("wide.py", steps).stdout


def test_a_job_that_does_not_fit_now_waits_and_says_why(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "large.py").write_text(KEEPING.format(mib=80))
    (tmp_path / "small.py").write_text(KEEPING.format(mib=60))
    for name in ("large", "small"):
        assert gpushare("run", f"{name}.py 30", "--budget", "200MiB").returncode == 0
    jobs = ("large.py 30", "small.py 30", "--budget", "140MiB")
    planned = json.loads(gpushare("plan", *jobs, "--policy", "auto", "--json").stdout)["policies"]["auto"]
    first, second = planned["jobs"]
    assert first["queued_s"] == 0 < second["queued_s"] == second["longest_wait_s"] == first["end_s"]
    assert "in the queue until others have ended: small (" in gpushare("plan", *jobs).stdout
    done = gpushare("run", *jobs, "--explain", "--summary", "s.json", "--log-dir", "logs")
    assert done.returncode == 0, done.stderr
    assert "waits for another job to end: with it, which by its saved profile keeps" in done.stderr
    _, line = (tmp_path / "logs" / "waits.tsv").read_text().splitlines()
    _, waited_s, forecast_s, name, _, place, other, reason, _ = line.split("\t")
    assert (forecast_s, place, reason) == ("", "queue", "queued") and {name, other} == {"large", "small"}
    (waiter,) = (job for job in summary(tmp_path)["jobs"] if job["name"] == name)
    assert waiter["waited_s"]["queued"] == pytest.approx(float(waited_s), abs=1e-5)
    assert waiter["longest_wait_s"] == summary(tmp_path)["longest_wait_s"] == waiter["waited_s"]["queued"]
    assert "before it began: by its saved profile" in " ".join(done.stdout.split())
    assert f"{name} waited " in done.stdout and ": queued " in done.stdout
    found = summary(tmp_path)
    assert [job["status"] for job in found["jobs"]] == ["ok", "ok"]
    assert found["pool_peak_bytes"] <= 140 * MIB
    assert sum(job["duration_s"] for job in found["jobs"]) < found["duration_s"]  # one after the other


ENDINGS = """
import atexit, os, sys
kind = os.environ["KIND"]
if kind == "exit":
    atexit.register(sys.exit, 3)
elif kind == "hard":
    atexit.register(os._exit, 4)
elif kind == "gone":
    sys.stdout.close()
"""


@pytest.mark.parametrize(("kind", "code"), [("exit", 0), ("hard", 4), ("gone", 1)])
def test_however_a_job_ends_who_is_queued_goes_on(
    gpushare: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, code: int
) -> None:
    (tmp_path / "first.py").write_text(ENDINGS + KEEPING.format(mib=80))
    (tmp_path / "second.py").write_text(KEEPING.format(mib=60))
    monkeypatch.setenv("KIND", "fine")
    assert gpushare("run", "first.py 10", "second.py 10").returncode == 0
    monkeypatch.setenv("KIND", kind)
    done = gpushare("run", "first.py 10", "second.py 10", "--budget", "140MiB", "--summary", "s.json")
    first, second = summary(tmp_path)["jobs"]
    assert "waits for another job to end" in done.stderr
    assert (first["exit_code"], second["status"]) == (code, "ok"), done.stderr


def twenty_jobs(
    gpushare: Run, plain: Run, tmp_path: Path, budget_mib: int, *arguments: str
) -> dict[str, Any]:
    """The summary of a run that stays within the budget, in which each job does what it does alone."""
    step = TRAIN.format(rows=4_000).replace("    optimizer.zero", "    time.sleep(0.1); optimizer.zero")
    (tmp_path / "job.py").write_text("import time, torch\ntorch.manual_seed(1)\n" + step)
    expected = plain("job.py", "12").stdout
    output = ("--summary", "s.json", "--log-dir", "logs")
    jobs = ["job.py 12"] * 20
    done = gpushare("run", *jobs, "--budget", f"{budget_mib}MiB", *arguments, *output, timeout=300)
    assert done.returncode == 0, done.stderr
    found = summary(tmp_path)
    assert found["pool_peak_bytes"] <= budget_mib * MIB
    assert [job["iterations"] for job in found["jobs"]] == [12] * 20
    logs = sorted((tmp_path / "logs").glob("*.out"))
    assert [log.read_text() for log in logs] == [expected] * 20
    return found


def test_twenty_jobs(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    """Where fewer at once do more a job may wait for a turn of a minute, or for others to end: not so here."""
    found = twenty_jobs(gpushare, plain, tmp_path, 150, "--order", "fair", "--explain")
    assert found["solo_peaks_sum_bytes"] > 2 * 150 * MIB
    # One that was put off to the others' end would wait for nine tenths of it. Their residues alone may leave no room
    # for all: who was copied out may have to, and who has no room to set up.
    here = {job["name"] for job in found["jobs"] if not job["copies_out"]}
    _, *rows = (tmp_path / "logs" / "waits.tsv").read_text().splitlines()
    waits = [row.split("\t") for row in rows]
    waited_s = [
        float(wait[1])
        for wait in waits
        if wait[3] in here and not (wait[5].startswith("memory:") and wait[7] == "residues")
    ]
    assert len(here) > 10 and 0 < max(waited_s) < 0.7 * found["duration_s"]


def test_twenty_jobs_in_turns_wait_a_quantum_for_each_other_one(
    gpushare: Run, plain: Run, tmp_path: Path
) -> None:
    """And for the iteration that it is in then. A job that was put off to the others' end would wait twice as long."""
    found = twenty_jobs(gpushare, plain, tmp_path, 250, "--policy", "temporal")["jobs"]
    assert not any(job["copies_out"] for job in found)
    for job in found:
        others = [other for other in found if other is not job]
        iterations_s = sum(other["alone_s"] / other["iterations"] for other in others)
        assert job["longest_wait_s"] < len(others) * QUANTUM_S + 1.5 * iterations_s, job


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--priority", "wide"), "--priority must be NAME=N with a whole number N, but got 'wide'"),
        (("--priority", "wide=high"), "but got 'wide=high'"),
        (("--priority", "other=3"), "there is no job 'other'; the jobs are wide"),
        (
            ("--priority", "wide=3", "--priority", "wide=4"),
            "must be given once for a job, but wide got 3 and 4",
        ),
        (
            ("--priority", f"wide={10**19}"),
            "--priority must be from -1000000000 to 1000000000, but got 10000000000000000000",
        ),
        (("--priority", "wide=3", "--order", "fair"), "jobs have priorities, but --order is fair"),
        (("--split-size", "0"), "--split-size must be at least a page, 2.0 MiB, but got '0' (0 B)"),
        (("--split-size", "1MiB"), "but got '1MiB' (1.0 MiB)"),
        (("--split-size", "50%"), "KiB, MiB, GiB or TiB, but got '50%'"),
        (
            ("--split-size", "8MiB", "--policy", "zico"),
            "--split-size cannot be used with --policy zico: only waterwave and auto have segments",
        ),
        (
            ("--order", "fair", "--policy", "unmanaged"),
            "--order cannot be used with --policy unmanaged: no job waits there",
        ),
        (
            ("--priority", "wide=1", "--policy", "unmanaged"),
            "a job's priority cannot be used with --policy unmanaged",
        ),
        (("--order", "random"), "'random' is not one of"),
    ],
)
def test_misuse(gpushare: Run, arguments: tuple[str, ...], message: str) -> None:
    done = gpushare("run", "wide.py 3", *arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_timeout_that_a_script_catches_leaves_it_in_its_place(gpushare: Run, tmp_path: Path) -> None:
    """It was out of scheduling from then on: no door, and no waiting for memory."""
    (tmp_path / "timeout.py").write_text(
        "import signal, time\n"
        "def late(*_): raise TimeoutError('late')\n"
        "signal.signal(signal.SIGALRM, late)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.2)\n"
        "try:\n    while True: time.sleep(0.01)\n"
        "except TimeoutError: print('caught')\n" + TRAIN.format(rows=20_000)
    )
    (tmp_path / "train.py").write_text(TRAIN.format(rows=20_000))
    done = gpushare("run", "timeout.py 60", "train.py 90", "--policy", "temporal", "--summary", "s.json")
    assert done.returncode == 0 and "timeout | caught" in done.stdout, done.stderr
    jobs = {j["name"]: j for j in json.loads((tmp_path / "s.json").read_text())["jobs"]}
    assert jobs["timeout"]["door_wait_s"] > 0.1


def test_the_shortest_of_those_that_wait_to_be_begun_goes_first(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "keeping.py").write_text(KEEPING.format(mib=20))
    # Far apart: what an iteration took is measured, on a machine that may have had other things to do.
    jobs = [f"keeping.py {n}" for n in (320, 80, 5, 20)]
    for job in jobs:  # each leaves a profile, with how many iterations it did
        assert gpushare("run", job, "--budget", "400MiB").returncode == 0
    (profile,) = {
        job["solo_peak_bytes"]
        for job in _ran(gpushare, tmp_path, "run", *jobs, "--budget", "400MiB", "--summary", "s.json")
    }
    ran = _ran(
        gpushare,
        tmp_path,
        "run",
        *jobs,
        "--budget",
        f"{profile // MIB + 6}MiB",
        "--order",
        "srtf",
        "--summary",
        "s.json",
    )
    assert sorted(range(4), key=lambda n: ran[n]["waited_s"]["queued"]) == [2, 3, 1, 0]


def _ran(gpushare: Run, tmp_path: Path, *arguments: str) -> list[dict[str, Any]]:
    done = gpushare(*arguments)
    assert done.returncode == 0, done.stderr
    jobs: list[dict[str, Any]] = summary(tmp_path)["jobs"]
    return jobs
