"""scripts/bench/auto.py: what it computes of its runs, and how long they are."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent.parent.parent / "scripts" / "bench"))
import auto
import auto_report
from auto import Job, Setting
from auto_report import HEADING, Run

MIB = 1 << 20
SETTING = Setting(500, 33, repeats=3, fixed_repeats=2, plain_part=0.25, policies=["auto", "zico", "greedy"])


def job(iteration_s: float, peak_mib: int = 64, residue_mib: int = 4) -> Job:
    return Job("a", peak_mib * MIB, residue_mib * MIB, iteration_s)


def figures(*runs: Run) -> dict[str, Any]:
    setting = {"pair": ["a", "b"], "steps": [500, 600], "budget_bytes": 96 * MIB, "peaks_bytes": 120 * MIB}
    return {**setting, "runs": [vars(run) for run in runs], "commit": "0"}


def test_each_job_does_at_least_the_iterations_and_lasts_at_least_the_seconds() -> None:
    assert auto.steps_for([job(0.1), job(0.05)], SETTING) == [500, 1000]
    assert auto.steps_for([job(0.01), job(0.003)], SETTING) == [3300, 11000]


def test_auto_is_measured_beside_plain_python_and_fixed_policies_in_fewer_repeats() -> None:
    assert [SETTING.policies_in(n) for n in range(3)] == [
        ["auto", "zico", "greedy"],
        ["greedy", "zico", "auto"],
        ["auto"],
    ]


def test_plain_python_does_a_part_of_the_iterations_but_no_fewer_than_it_needs() -> None:
    assert [SETTING.plain_steps(n) for n in (1000, 40, 10)] == [250, 30, 10]


def test_the_budget_is_the_share_or_what_is_needed() -> None:
    pair = [job(1.0), job(1.0)]
    assert auto.budget_for(pair, 0.8) == round(0.8 * 128 * MIB)
    assert auto.budget_for(pair, 0.1) == (64 + 4 + 8) * MIB
    assert auto.budget_for([job(1.0, 4, 0)] * 2, 0.8) == auto.LEAST_BUDGET


def test_all_fixed_policies_are_there() -> None:
    assert {"temporal", "zico", "waterwave", "greedy"} < set(auto.POLICIES)
    assert {name for pair in auto.PAIRS for name in pair.split("+")} <= set(auto.SCRIPTS)
    assert "launch_bound+digits_cnn" in auto.PAIRS


def test_a_row_tells_the_real_budget_what_trials_lost_and_the_modes() -> None:
    runs = [
        Run("auto", 0, 40.0, 1.2, {"zico": 30.0, "turns": 10.0}, 0.2),
        Run("auto", 1, 38.0, 1.3, {"zico": 40.0}, 0.0),
        Run("zico", 0, 41.0, 1.1, {"zico": 40.0}, 0.0),
        Run("greedy", 0, 41.0, 1.0, {}, None),
    ]
    rows = [dict(zip(HEADING, row, strict=True)) for row in auto_report.rows(figures(*runs))]
    first = rows[0]
    assert (first["budget, MiB"], first["of the sum of peaks"], first["repeats"]) == ("96", "0.80", 2)
    assert (first["s, least"], first["of the best fixed"]) == ("38", "1.136 (zico)")
    assert first["trials lost, % (most)"] == "0.25 (0.50)"
    assert first["in modes, %"] == "turns 12, zico 88"
    assert first["lower bound"] == f"{auto_report.lower_bound([1.2, 1.3]):.3f}"
    assert rows[2]["in modes, %"] == rows[2]["trials lost, % (most)"] == rows[2]["lower bound"] == "-"


def test_the_lower_bound_is_that_of_student() -> None:
    assert auto_report.lower_bound([1.0]) is None
    assert auto_report.lower_bound([1.0, 1.2]) == pytest.approx(1.1 - 6.314 * 0.1)
    assert auto_report.lower_bound([1.0, 1.1, 1.2, 1.3, 1.4]) == pytest.approx(
        1.2 - 2.132 * 0.158114 / 5**0.5, abs=1e-4
    )
