"""A job whose memory is away for good: the run says so and ends, or goes on with a larger budget."""

import json
import re
import subprocess
import sys
from pathlib import Path

from conftest import Run, environment, outgrow

# One is away when the other one ends, and leaves what it has in a module that both share.
KEEPS = outgrow(
    first="""
kept_for_good = vars(threading).setdefault("_kept_by_this_test", [])
""",
    at_ten="""
        if not kept_for_good:
            kept_for_good.extend([*kept, *(torch.zeros(1 << 20) for _ in range(10))])
            sys.exit(0)
""",
)
OPTIONS = ("--budget", "170MiB", "--policy", "greedy", "--summary", "s.json")


def test_what_an_ended_job_keeps_strands_another_one(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "keeps.py").write_text(KEEPS)
    done = gpushare("run", "keeps.py a", "keeps.py b", *OPTIONS, timeout=180)
    assert done.returncode == 3, done.stdout + done.stderr
    summary = json.loads((tmp_path / "s.json").read_text())
    assert sorted(job["status"] for job in summary["jobs"]) == ["ok", "refused"]
    assert summary["pool_peak_bytes"] <= summary["budget_bytes"]
    (refused,) = [job for job in summary["jobs"] if job["status"] == "refused"]
    assert "were copied out for the others" in refused["message"] and "170.0 MiB" in refused["message"]
    assert "it ends in 30 s if nothing changes" in done.stderr


def test_a_larger_budget_saves_it(tmp_path: Path) -> None:
    (tmp_path / "keeps.py").write_text(KEEPS)
    command = [str(Path(sys.executable).with_name("gpushare"))]
    process = subprocess.Popen(
        [*command, "run", "keeps.py a", "keeps.py b", *OPTIONS],
        cwd=tmp_path,
        env=environment(tmp_path),
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr
    told = next((line for line in process.stderr if "it ends in 30 s" in line), "")
    budget = re.search(r"`gpushare budget (\d+)MiB` or more", told)
    assert budget and int(budget[1]) > 170, told  # its iteration is not at its peak yet: it needs more
    changed = subprocess.run(
        [*command, "budget", f"{int(budget[1]) + 100}MiB", "--run", str(process.pid)],
        cwd=tmp_path,
        env=environment(tmp_path),
        text=True,
        capture_output=True,
    )
    assert changed.returncode == 0, changed.stderr
    err = process.stderr.read()
    assert process.wait(timeout=120) == 0, err
    assert [job["status"] for job in json.loads((tmp_path / "s.json").read_text())["jobs"]] == ["ok", "ok"]
