"""How well each mode will do, to know with which one to begin (`scheduling.look_ahead`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpushare.scheduling.efficiency import efficiency
from gpushare.scheduling.look_ahead import rates_of
from gpushare.scheduling.policies import POLICIES
from gpushare.scheduling.snapshot import FEWER, TURNS, Snapshot


def forecasts(snapshot: Snapshot, modes: Sequence[str]) -> dict[str, float]:
    """The efficiency of each mode; of modes that permit the same only the first.

    So it is where all peaks fit at once. Jobs without a curve are left out, and so is FEWER (`scheduling.fewer`); those
    that are set aside now count.
    """
    jobs = tuple(job for job in snapshot.jobs if job.curve and job.curve.duration_s > 0)
    curves = [job.curve for job in jobs if job.curve]
    room = snapshot.budget_bytes - snapshot.reserved_bytes
    sharing = [mode for mode in modes if mode not in (TURNS, FEWER)]
    found: dict[str, float] = {}
    if sum(curve.peak_bytes for curve in curves) <= room:
        found[sharing[0]] = float(len(curves))
    else:
        permitted = {
            mode: POLICIES[mode](replace(snapshot, jobs=jobs, mode=mode, aside=frozenset()))
            for mode in sharing
        }
        for mode, permits in permitted.items():
            if all(permits != permitted[other] for other in found):
                found[mode] = efficiency(rates_of(permits, [job.account for job in jobs], curves, room))
    return found | ({TURNS: 1.0} if TURNS in modes else {})
