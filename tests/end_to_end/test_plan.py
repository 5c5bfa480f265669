"""`gpushare plan` through the console script."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import TRAIN, Run

MIB = 1 << 20


@pytest.fixture(autouse=True)
def scripts(tmp_path: Path, train: None) -> None:
    (tmp_path / "wide.py").write_text(TRAIN.format(rows=12_000))


def test_scripts_are_profiled_once_and_planned(gpushare: Run, tmp_path: Path) -> None:
    options = ("--budget", "120MiB", "--slowdown", "1")  # whatever was measured of bandwidth and the GIL
    first = gpushare("plan", "wide.py 40", "wide.py 40", *options, "--json", "--sweep-budget")
    assert first.returncode == 0, first.stderr
    assert first.stderr.count("runs until it is measured") == 1
    plan = json.loads(first.stdout)
    assert [job["name"] for job in plan["jobs"]] == ["wide", "wide-2"]
    peak = plan["jobs"][0]["peak_bytes"]
    assert 60 * MIB < peak < 120 * MIB
    assert set(plan["policies"]) == {"auto", "unmanaged", "temporal", "greedy", "zico", "waterwave"}
    turns, shared = plan["policies"]["temporal"], plan["policies"]["zico"]
    assert turns["stp"] == pytest.approx(1) and turns["over_serial"] == pytest.approx(1, abs=0.01)
    assert 1 < shared["stp"] <= 2 and shared["duration_s"] < turns["duration_s"]
    assert max(turns["pool_peak_bytes"], shared["pool_peak_bytes"]) <= 120 * MIB
    assert turns["all_run_from_bytes"] <= shared["nothing_waits_from_bytes"] <= 2 * peak + 4 * MIB
    assert plan["sweep"]["stp"]["zico"][-1] == pytest.approx(2, rel=0.02)

    again = gpushare("plan", "wide.py 40", "wide.py 40", *options, "--policy", "zico")
    assert again.returncode == 0 and again.stderr == ""
    assert "all 2 " in again.stdout and "the pool under zico" in again.stdout

    (saved,) = (tmp_path / "cache" / "gpushare" / "profiles").glob("*.json")
    (tmp_path / "p.json").write_bytes(saved.read_bytes())
    from_file = gpushare("plan", "p.json", "p.json", *options, "--json", "--policy", "zico")
    assert json.loads(from_file.stdout)["policies"]["zico"] == {**shared, "policy": "zico"}

    other = {**json.loads(saved.read_text()), "device": "cuda X", "torch": "1.0", "page_bytes": MIB}
    (tmp_path / "q.json").write_text(json.dumps(other))
    mixed = gpushare("plan", "p.json", "q.json", *options, "--policy", "zico")
    assert mixed.returncode == 0, mixed.stderr
    assert "differ in device and are planned as if they did not: cpu (wide); cuda X (wide-2)" in mixed.stderr
    assert (
        "1.0 (wide-2)" in mixed.stderr and "page size" in mixed.stderr and "1.0 MiB (wide-2)" in mixed.stderr
    )
    alike = gpushare("plan", "q.json", "q.json", *options, "--policy", "zico")
    assert alike.returncode == 0
    assert alike.stderr.startswith(
        "gpushare: not measured on cpu, the device here: wide (cuda X), wide-2 (cuda X)"
    )

    small = gpushare("plan", "p.json", "p.json", "--budget", "50MiB")
    assert small.returncode == 3
    assert "wide needs at least" in small.stderr and "the budget is 50.0 MiB" in small.stderr
    assert "0 of 2 " in small.stdout


ALTERNATES = """
import torch
torch.manual_seed(1)
model = torch.nn.Sequential(*(torch.nn.Linear(128, 128) for _ in range(12)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(30):
    rows = 1000 if step % 3 == 2 else 10000
    loss = model(torch.randn(rows, 128)).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    print(step, loss.item())
"""


def test_kinds_of_iterations_are_kept_for_later(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "kinds.py").write_text(ALTERNATES)
    first = gpushare("run", "kinds.py", "--summary", "1.json")
    assert first.returncode == 0, first.stderr
    (saved,) = (tmp_path / "cache" / "gpushare" / "profiles").glob("*.json")
    profile = json.loads(saved.read_text())
    small, large = two_most_seen(profile)
    assert large["seen"] > 1.5 * small["seen"] and large["iteration_s"] > 2 * small["iteration_s"]
    assert max(large["held_bytes"]) == profile["peak_held_bytes"] > 2 * max(small["held_bytes"])
    assert small["followed_by"][profile["kinds"].index(small)] == 0

    planned = gpushare("plan", "kinds.py", "kinds.py", "--budget", "1GiB", "--json")
    for job in json.loads(planned.stdout)["jobs"]:
        assert job["kinds"] == len(profile["kinds"])
        assert small["iteration_s"] < job["iteration_s"] < large["iteration_s"]

    again = gpushare("run", "kinds.py", "--summary", "2.json")
    assert again.returncode == 0 and "starts with its saved profile" in again.stderr
    seen = [kind["seen"] for kind in two_most_seen(json.loads(saved.read_text()))]
    assert seen[0] > small["seen"] and seen[1] > large["seen"]  # those of the first run are among them


def test_a_script_whose_last_argument_is_a_json_file(gpushare: Run) -> None:
    planned = gpushare("plan", "train.py 9 --config other.json", "--json", "--policy", "zico")
    assert planned.returncode == 0, planned.stderr
    assert "train has no saved profile and runs until it is measured" in planned.stderr


@pytest.mark.parametrize(
    "ends",
    ["open(__file__, 'a').write('# changed\\n')", "__import__('os').unlink(__file__)"],
    ids=["edited", "removed"],
)
def test_a_profile_is_of_the_script_as_it_began(ends: str, gpushare: Run, tmp_path: Path) -> None:
    script = TRAIN.format(rows=64)
    (tmp_path / "changing.py").write_text(f"{script}\n{ends}\n")
    first = gpushare("run", "changing.py 8")
    assert first.returncode == 0 and "peaks alone sum" in first.stdout, first.stderr
    if (tmp_path / "changing.py").exists():
        assert "saved profile" not in gpushare("run", "changing.py 8").stderr
    (tmp_path / "changing.py").write_text(f"{script}\n{ends}\n")
    assert "changing starts with its saved profile" in gpushare("run", "changing.py 8").stderr


ADAM = """
import torch

model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(6)))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(30):
    optimizer.zero_grad()
    model(torch.ones(8, 64)).sum().backward()
    optimizer.step()
"""


def test_the_first_iteration_is_not_what_the_others_are_measured_by(gpushare: Run, tmp_path: Path) -> None:
    """It made the optimizer's state, and became the kind that all solo times were scaled from, in the profile too."""
    (tmp_path / "adam.py").write_text(ADAM)
    for n in range(3):
        done = gpushare("run", "adam.py", "--summary", "s.json")
        assert done.returncode == 0 and ("saved profile" in done.stderr) == (n > 0)
        (job,) = json.loads((tmp_path / "s.json").read_text())["jobs"]
        assert job["iterations"] == 30 and job["iteration_kinds"] == 1
        (saved,) = (tmp_path / "cache" / "gpushare" / "profiles").glob("*.json")
        assert json.loads(saved.read_text())["kinds"] == []


def test_a_profile_may_be_left_alone(gpushare: Run) -> None:
    assert gpushare("run", "wide.py 8").returncode == 0
    anew = gpushare("run", "wide.py 8", "--no-profile", "--summary", "s.json")
    assert anew.returncode == 0 and "saved profile" not in anew.stderr
    assert "wide starts with its saved profile" in gpushare("run", "wide.py 8").stderr


def test_who_goes_first_is_planned_too(gpushare: Run, tmp_path: Path) -> None:
    jobs = ("wide.py 40", "wide.py 40")
    options = ("--budget", "120MiB", "--policy", "temporal")
    assert gpushare("plan", *jobs, *options).returncode == 0
    first = gpushare("plan", *jobs, *options, "--priority", "wide-2=5", "--json")
    assert first.returncode == 0, first.stderr
    report = json.loads(first.stdout)
    assert report["order"] == "priority" and [job["priority"] for job in report["jobs"]] == [0, 5]
    ends = [job["end_s"] for job in report["policies"]["temporal"]["jobs"]]
    assert ends[1] < 0.6 * ends[0]
    both = (*options, "--policy", "waterwave", "--priority", "wide-2=5", "--split-size", "8MiB")
    told = gpushare("plan", *jobs, *both).stdout
    assert "who goes first: priority (wide-2 5)" in told and "waterwave's segments: 8.0 MiB" in told
    wrong = gpushare("plan", *jobs, *options, "--priority", "wide-2=5", "--order", "fifo")
    assert wrong.returncode == 2 and "--order is fifo" in wrong.stderr
    idle = gpushare("plan", *jobs, *options, "--policy", "zico", "--split-size", "8MiB")
    assert (
        idle.returncode == 2 and "--split-size cannot be used with --policy temporal and zico" in idle.stderr
    )


def two_most_seen(profile: dict[str, Any]) -> list[dict[str, Any]]:
    """Kinds, the smaller one first. The first iteration, from which the weights' gradients stay, may be of a third."""
    two = sorted(profile["kinds"], key=lambda kind: -kind["seen"])[:2]
    return sorted(two, key=lambda kind: max(kind["held_bytes"]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing to plan"),
        (("none.py",), "no script none.py"),
        (("none.json",), "there is no profile none.json"),
        (("other.json",), "other.json is not a gpushare profile"),
        (("broken.json",), "broken.json is damaged"),
        (("train.py", "--policy", "magic"), "'magic' is not one of"),
        (("train.py", "--budget", "1MB"), "at least 32.0 MiB, but got 976.6 KiB"),
        (("train.py", "--slowdown", "0.5"), "'--slowdown': must be a number from 1 to 1000, but got '0.5'"),
        (("train.py", "--slowdown", "inf"), "must be a number from 1 to 1000, but got 'inf'"),
        (("train.py", "--stagger", "nan"), "must be a number from 0 to 3600, but got 'nan'"),
        (("train.py", "--cores", "nan"), "must be a number from 1 to 4096, but got 'nan'"),
        (("train.py", "--threads", "-1"), "must be a number from 0.01 to 4096, but got '-1'"),
        (("train.py", "--stagger", "soon"), "must be a number from 0 to 3600, but got 'soon'"),
        (("train.py", "--device", "cuda"), "--device cuda: "),
    ],
)
def test_bad_input_simulates_nothing(
    arguments: tuple[str, ...], message: str, gpushare: Run, tmp_path: Path
) -> None:
    (tmp_path / "other.json").write_text("[1, 2]")
    (tmp_path / "broken.json").write_bytes(b"\xff\xfe{")
    done = gpushare("plan", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""


def test_a_script_that_has_no_iterations_is_told(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "idle.py").write_text("print('nothing')\n")
    done = gpushare("plan", "idle.py", "--budget", "100MiB")
    assert done.returncode == 2
    assert "no profile: idle ended well: it takes 3 iterations, and none was seen" in done.stderr
    assert done.stdout == ""


def test_the_parent_does_not_import_torch(plain: Run) -> None:
    code = "import sys, gpushare.commands; print('torch' in sys.modules)"
    assert plain("-c", code).stdout == "False\n", sys.executable
