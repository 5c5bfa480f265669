"""Runs under the product's policies, by their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Required, TypedDict, Unpack

from gpushare.scheduling.order import NATIVE, QUANTUM_S
from gpushare.scheduling.policies import MODES, POLICIES
from gpushare.simulation.contention import Contention
from gpushare.simulation.engine import Engine
from gpushare.simulation.job import SimulatedJob
from gpushare.simulation.outcome import Outcome
from gpushare.simulation.rules import PLAIN, Rules


class Settings(TypedDict, total=False):
    """Of a run. `record`: keep the timeline, as is done unless told otherwise. `rules`: plain ones unless told."""

    contention: Required[Contention]
    page_bytes: int
    record: bool
    rules: Rules


def engine_for(
    jobs: Sequence[SimulatedJob], policy: str, budget_bytes: int, **settings: Unpack[Settings]
) -> Engine:
    """A run of these jobs under a policy of the product, by name, that has not begun."""
    modes = MODES.get(policy, ()) if len(jobs) > 1 else ()
    known = POLICIES[policy]
    engine = Engine(jobs, policy=known, mechanism=policy, budget_bytes=budget_bytes, modes=modes, **settings)
    order = settings.get("rules", PLAIN).order
    engine.governor.order(NATIVE[order], round(QUANTUM_S * 1e9))
    return engine


def simulate(
    jobs: Sequence[SimulatedJob], *, policy: str, budget_bytes: int, **settings: Unpack[Settings]
) -> Outcome:
    """Run all jobs to their end, as `engine_for` has them."""
    engine = engine_for(jobs, policy, budget_bytes, **settings)
    with engine.governor as governor:
        engine.run()
        return Outcome(
            policy=policy,
            budget_bytes=budget_bytes,
            duration_s=max(j.end_s for j in engine.outcomes()),
            window_s=engine.window_s,
            pool_peak_bytes=engine.pool_peak_bytes,
            headroom_bytes=governor.pool().headroom_bytes,
            turns_s=engine.yields.turns_s,
            modes_s={name: mode.seconds for name, mode in engine.yields.modes.items()},
            jobs=tuple(engine.outcomes()),
            timeline=engine.timeline,
        )
