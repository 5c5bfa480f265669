"""Everything that a plan tells, as plain data: what `gpushare plan --json` prints and what the view draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpushare.simulation.contention import Contention
from gpushare.simulation.job import SimulatedJob
from gpushare.simulation.rules import PLAIN, Rules
from gpushare.simulation.runs import simulate
from gpushare.simulation.search import budgets, sweep, sweep_budgets

VERSION = 1


def build_report(
    jobs: Sequence[SimulatedJob],
    *,
    policies: Sequence[str],
    budget_bytes: int,
    page_bytes: int,
    contention: Contention,
    rules: Rules = PLAIN,
    tell: Callable[[str], None] = lambda what: None,
) -> dict[str, Any]:
    """Bytes in bytes, times in seconds, None for what is not known or does not exist.

    :param tell: gets what comes next.
    """
    peaks = [job.peak_bytes for job in jobs]
    return {
        "version": VERSION,
        "budget_bytes": budget_bytes,
        "page_bytes": page_bytes,
        "cores": contention.cores,
        "slowdown": contention.factor,
        "order": rules.order,
        "split_bytes": rules.split_bytes,
        "solo_peaks_sum_bytes": sum(peaks),
        "serial_s": sum(job.solo_s for job in jobs),
        "jobs": [_job(job, budget_bytes) for job in jobs],
        "policies": {
            policy: _policy(jobs, policy, budget_bytes, page_bytes, contention, rules, tell)
            for policy in policies
        },
        "sweep": None,
    }


def build_sweep(
    jobs: Sequence[SimulatedJob],
    *,
    policies: Sequence[str],
    page_bytes: int,
    contention: Contention,
    points: int,
    least_bytes: int = 0,
    rules: Rules = PLAIN,
    tell: Callable[[str], None] = lambda what: None,
) -> dict[str, Any]:
    """STP of each policy at `points` budgets from the largest peak to the sum of them, none below `least_bytes`.

    :param tell: gets what comes next.
    """
    at = sweep_budgets(jobs, points, page_bytes, least_bytes)
    found = sweep(
        jobs,
        policies=policies,
        budgets_bytes=at,
        contention=contention,
        page_bytes=page_bytes,
        rules=rules,
        tell=tell,
    )
    return {
        "budget_bytes": at,
        "stp": {policy: [point.stp for point in points] for policy, points in found.items()},
        "ended": {policy: [point.ended for point in points] for policy, points in found.items()},
    }


def _job(job: SimulatedJob, budget_bytes: int) -> dict[str, Any]:
    return {
        "name": job.name,
        "peak_bytes": job.peak_bytes,
        "residue_bytes": job.residue_bytes,
        "iteration_s": job.mean_iteration_s,
        "kinds": len(job.kinds) or 1,
        "iterations": job.iterations,
        "threads": job.threads,
        "arrival_s": job.arrival_s,
        "priority": job.priority,
        "fits_alone": job.peak_bytes <= budget_bytes,
    }


def _policy(
    jobs: Sequence[SimulatedJob],
    policy: str,
    budget_bytes: int,
    page_bytes: int,
    contention: Contention,
    rules: Rules,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    # More than they can ever hold changes nothing, and the governor keeps books of every page.
    enough = 2 * sum(job.peak_bytes for job in jobs) + 64 * page_bytes
    tell(f"simulating {len(jobs)} jobs under {policy}")
    outcome = simulate(
        jobs,
        policy=policy,
        budget_bytes=min(budget_bytes, enough),
        contention=contention,
        page_bytes=page_bytes,
        rules=rules,
    )
    tell(f"searching the budgets that {policy} needs")
    found = budgets(
        jobs, policy=policy, contention=contention, page_bytes=page_bytes, split_bytes=rules.split_bytes
    )
    return {
        **outcome.to_json(),
        "budget_bytes": budget_bytes,
        "nothing_waits_from_bytes": found.nothing_waits,
        "all_run_from_bytes": found.all_run,
    }
