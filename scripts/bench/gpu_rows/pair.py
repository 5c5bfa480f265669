"""Two jobs together in a budget: under gpushare, without coordination, and as two plain processes at once.

Against the same two one after the other, each under gpushare. Of the waits on the device there is a count and no time:
the shim makes streams wait for events, and takes no clock on the device.
"""

import psutil

from .bench import Bench, Solo
from .row import NotMeasured, Row
from .running import Ran
from .timing import Together, together

WHAT = "two jobs in a budget, in the larger peak alone, against one after the other"
LEAST_STP = 0.98
LEAST_WINDOW_S = 5.0  # `auto` measures for two seconds before it believes a mode
UNMANAGED = ("--policy", "unmanaged")
MPS = "nvidia-cuda-mps"
# At which budget two are to reach that, where the device is idle enough while each runs alone.
IDLE_FACTOR, IDLE_STP = 1.6, 1.15


def measure(bench: Bench, names: str, factor: float, least_bytes: int, row: Row) -> None:
    """`factor` is of the larger peak; the budget is at least `least_bytes`."""
    jobs = names.split("+")
    solos: list[Solo] = []
    for number, name in enumerate(jobs, 1):
        solos.append(bench.solo(name))
        row.figures[f"alone_{number}_step_s"] = solos[-1].step_s
    peak = max(solo.held_bytes for solo in solos)
    budget = max(int(factor * peak), least_bytes)
    row.figures |= {"larger_peak_bytes": peak, "budget_bytes": budget}
    lines = [bench.lasting(name, solo) for name, solo in zip(jobs, solos, strict=True)]
    ran = bench.runner.gpushare(lines, budget)
    shared(bench, ran, solos, row)
    bench.target(row, f"at least {LEAST_STP} of one after the other", row.figures["stp"] >= LEAST_STP)
    row.part("what the device leaves idle", lambda: idle(bench, factor, solos, row))
    row.part("unmanaged", lambda: unmanaged(bench, lines, budget, solos, row))
    row.part("two plain processes", lambda: processes(bench, lines, budget, solos, row))


def shared(bench: Bench, ran: Ran, solos: list[Solo], row: Row) -> None:
    """The figures of a run under gpushare."""
    summary, budget = ran.summary, ran.summary["budget_bytes"]
    row.claims["the pool stays inside the budget"] = summary["pool_peak_bytes"] <= budget
    row.figures["pool_peak_over_larger_peak"] = summary["pool_peak_bytes"] / max(s.held_bytes for s in solos)
    row.figures["advancing_together"] = summary["overlap_s"] / max(summary["eligible_s"], 1e-9)
    for name in ("memory_wait_s", "door_wait_s", "memory_waits"):
        row.figures[name] = sum(job[name] for job in summary["jobs"])
    for name in ("device_waits", "cpu_waits"):
        row.figures[name] = sum(job["memory"][name] for job in summary["jobs"])
    both = together(ran.ends_s, bench.settings.few)
    bench.target(row, f"judged on {LEAST_WINDOW_S:g} s at least", both.window_s >= LEAST_WINDOW_S)
    paces("", both, solos, row)


def idle(bench: Bench, factor: float, solos: list[Solo], row: Row) -> None:
    """`stp_of_idle_times` is what two would reach whose kernels never ran beside each other, if one filled the time in
    which the other one leaves the device without any: two over the parts of their time in which, alone, they do not."""
    busy = [solo.busy for solo in solos]
    for number, part in enumerate(busy, 1):
        if isinstance(part, str):
            raise NotMeasured(part)
        row.figures[f"alone_{number}_busy"] = part
    row.figures["stp_of_idle_times"] = reachable = 2 / max(sum(map(float, busy)), 1.0)
    if factor == IDLE_FACTOR and reachable >= IDLE_STP:
        claim = f"at least {IDLE_STP} of one after the other, as one leaves the device idle"
        bench.target(row, claim, row.figures["stp"] >= IDLE_STP)


def unmanaged(bench: Bench, jobs: list[str], budget: int, solos: list[Solo], row: Row) -> None:
    """Without coordination jobs run out of memory where the sum of their needs is above the budget."""
    ran = bench.runner.gpushare(jobs, budget, *UNMANAGED, accept=(0, 1))
    row.figures["unmanaged_jobs_failed"] = len(ran.failed)
    row.notes += [f"unmanaged: {failed}" for failed in ran.failed]
    if not ran.failed:
        paces("unmanaged_", together(ran.ends_s, bench.settings.few), solos, row)


def processes(bench: Bench, jobs: list[str], budget: int, solos: list[Solo], row: Row) -> None:
    """The same for all budgets of a pair: plain processes know of none."""
    if daemons := [p.info["name"] for p in psutil.process_iter(["name"]) if MPS in (p.info["name"] or "")]:
        raise NotMeasured(f"with {daemons[0]} on the machine they would share the GPU otherwise than without")
    ran = bench.once(("processes", *jobs), lambda: bench.runner.python(jobs))
    paces("processes_", together(ran.ends_s, bench.settings.few), solos, row)
    if bench.on_gpu:
        row.figures["processes_native_bytes"] = sum(ran.native_bytes)
        row.figures["processes_native_over_budget"] = sum(ran.native_bytes) / budget


def paces(prefix: str, both: Together, solos: list[Solo], row: Row) -> None:
    """Throughput in steps of both, and in solo time; times of one after the other are 1 over STP."""
    alone, plain = [solo.step_s for solo in solos], [solo.plain_step_s for solo in solos]
    row.figures[f"{prefix}window_s"] = both.window_s
    row.figures[f"{prefix}steps_per_s"] = sum(both.steps) / both.window_s
    row.figures[f"{prefix}stp"] = both.stp(alone)
    row.figures[f"{prefix}antt"] = both.antt(alone)
    row.figures[f"{prefix}time_over_one_after_the_other"] = 1 / both.stp(alone)
    row.figures[f"{prefix}time_over_plain_one_after_the_other"] = 1 / both.stp(plain)
