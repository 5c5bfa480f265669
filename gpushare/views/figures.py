"""The end of a run in figures, as JSON has them; `summary` has the same for reading.

What each field is. Names that end in `_s` are seconds, in `_bytes` bytes; all others are counts, if nothing
else is said. Null stands for what is not known or was not there.

Of the run:

- `policy`, `device`: as they were asked for and chosen.
- `budget_bytes`: with which it began. `budget_at_end_bytes`: only there if `gpushare budget` has changed it.
- `pool_peak_bytes`: the most that all jobs held together.
- `duration_s`: from the start of the host to its end. `stopped_s`: only there if Ctrl-Z has stopped the run; all times
  have it in them, and `serial_estimate_s` is null then.
- `overlap_s`: in which iterations of two jobs or more advanced: each had the processors for half of a slice of ten
  milliseconds (on a GPU: was open, and did not wait), so it is too little where other programs take them. `eligible_s`:
  in which two jobs or more were measured and had not ended, so that it could have been.
- `modes`: of each mode that jobs ran in (`temporal` is in turns, `groups` is some in turns, `fewer` is with some set
  aside): the `seconds` in which two jobs or more ran in it; its `yield`, solo seconds of iterations done per second,
  as last measured, and its `pace`, the same of all its time; its `efficiency`, by which modes are compared
  (`scheduling/efficiency.py`). `turns_s`: the seconds in turns. `yield_in_turns`: the yield of that.
  `yield_side_by_side`: the best one of those in which all share. `trials_lost_s`: what trials of other modes have lost.
- `python_grants`: starts that only a new permit of the policy allowed, of all jobs.
- `longest_wait_s`: of any job.
- `solo_peaks_sum_bytes`: the sum of the jobs' `solo_peak_bytes`. `serial_estimate_s`: what one after the other would
  take, each in a host of its own: the sum of their `alone_s`, and for each what this host took to start and to end.
  Null if one of them is.
- `page_bytes`: of the pool. `pages_changed_owner`: pages that passed from one job to another. `pages_dropped`: pages
  that were taken from one address for another.
- `parks`: how often the other jobs had to stop for a fork of one. `park_s`: how long that took, in all.
- `pool_base`: the address at which the pool begins. `pool_reserved_bytes`: addresses that it has.
- `wakes`: the latest wake-ups of jobs that had waited, 16384 at most: their `count`; the `median_s`, the 99th
  percentile `p99_s` and the `longest_s` of the times from the free (the grant, where no free made the room) to the
  thread running again; and under `gil` the same of the times from there to its having the GIL.
- `scheduler_cpu_s`: CPU time of the scheduler's thread.
- `pair_factor`: what a run of two jobs has taught of them as a pair: by which `factor` each is slower beside the other,
  the mean of all `runs`, and the one that `this_run` has shown.
- `restarts`: only there with `--restart`, if there were any: a summary like this one of each host that came later.
- `jobs`: a list, in the order of the command line.

Of a job:

- `name`, `command`; `status`: one of those of `launcher/results.py`; `exit_code`; `message`: why it ended so, if there
  is more to say.
- `iterations`, without evaluation: `batches_evaluated` are its batches. `iteration_kinds`: how many kinds of iterations
  were seen.
- `duration_s`: from its first line to its end. `alone_s`: an estimate of that with nobody beside: less what it waited,
  in its set-up for the GIL and for a processor too, its iterations at their pace alone, each as long as its kind: as
  profiled, or as the scheduler has found them since, where others had disturbed that (`scheduling.progress.SoloTimes`).
- `solo_peak_bytes`: the most that it held in an iteration with nobody beside, or by its profile. `held_peak_bytes`: the
  most that it held, in whole pages. `live_peak_bytes`: the most that its blocks had. `remaining_bytes`: what was held
  of it after its end.
- `time_shift_s`: from the start of another job's iteration to that of its own, on the mean; `predicted_time_shift_s`:
  the one that was planned last; `shift_error_s`: how far these are from each other.
- `door_wait_s`: what it waited at doors. `memory_wait_s`, `memory_waits`: what it waited for memory within
  iterations, and how often. `waited_s`: both by reason: `behind`, `turn`, `shift`, `claims`, `memory-first`,
  `measured`, `residues`, `fork`, `overrun`, `set-aside`, `copied-out` (`telemetry/decisions.py` has their meaning);
  and `queued`, before it began, which is not in `duration_s`. `longest_wait_s`: the longest of all these.
- `waits_forecast`: of how many waits the length was forecast: those for a planned start, with `--explain` all that
  curves could forecast. `forecast_error_s`: by how much that was wrong, on the mean.
- `longest_wake_s`: the longest time from a grant to its thread running with the GIL.
- `gil_wait_s`: what the thread that runs the script waited for the interpreter's lock (GIL), which jobs share, in all.
- `overruns`: how often it came to need more than it claims. `copies_out`: how often its memory was copied out for
  another job. `leases`: segments of iterations that it was promised memory for. `python_grants`: as above.
- `memory`, of its end: `allocations`, `frees`, and `bad_frees`, which fit no block; `live_bytes`, and of these by where
  blocks lie (`shim/src/heap.h`) `live_small_bytes`, `live_persistent_bytes`, `live_transient_bytes` and
  `live_extents_bytes`; `reserved_bytes`: addresses. What was live at the profiled peak: `peak_persistent_bytes`,
  `peak_activation_bytes`, `peak_temporary_bytes`. `pages_received`: pages that another job had; `mappings`: of pages;
  `events`: that were recorded on its streams; `device_waits` and `cpu_waits`: for such events, on the device and of the
  CPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpushare.launcher.results import JobResult
from gpushare.telemetry.decisions import QUEUED, REASONS, Wait
from gpushare.telemetry.reader import JobView, PoolView, Telemetry, Wake


def build_summary(
    telemetry: Telemetry,
    results: list[JobResult],
    *,
    policy: str,
    budget_bytes: int,
    duration_s: float,
    device: str = "cpu",
    yields: Mapping[str, Any] | None = None,
    queued: Iterable[Wait] = (),
) -> dict[str, Any]:
    """The fields that the module's text tells of, but for those that `commands.reports` adds.

    :param yields: `scheduling.yields.Yields.to_json`, if the host got as far as to tell.
    :param queued: waits of jobs before they began.
    """
    pool = telemetry.pool()
    before_s: list[list[float]] = [[] for _ in results]
    for wait in queued:
        before_s[wait.account - 1].append(wait.waited_ns / 1e9)
    solo_s = (yields or {}).get("solo_s", {})
    jobs = [
        _job(r, telemetry.job(r.account), waited_s, solo_s.get(str(r.account)))
        if r.account
        else _never_ran(r, waited_s)
        for r, waited_s in zip(results, before_s, strict=True)
    ]
    peaks = [j["solo_peak_bytes"] for j in jobs]
    return {
        "policy": policy,
        "device": device,
        "budget_bytes": budget_bytes,
        "pool_peak_bytes": pool.held_peak_bytes,
        "duration_s": duration_s,
        "overlap_s": pool.overlap_ns / 1e9,
        "eligible_s": pool.eligible_ns / 1e9,
        **{name: (yields or {}).get(name) for name in _YIELDS},
        "python_grants": sum(j["python_grants"] for j in jobs),
        "longest_wait_s": max((j["longest_wait_s"] for j in jobs), default=0.0),
        "solo_peaks_sum_bytes": None if None in peaks else sum(peaks),
        "serial_estimate_s": _serial_s(jobs, duration_s - _any_ran_s(telemetry, results)),
        **_pages(pool),
        "wakes": _wakes(telemetry.wakes()),
        "jobs": jobs,
    }


def _any_ran_s(telemetry: Telemetry, results: Iterable[JobResult]) -> float:
    """From the first line of the first job to the end of the last one."""
    views = [telemetry.job(result.account) for result in results if result.account]
    ran = [view for view in views if view.end_ns]
    if not ran:
        return 0.0
    return (max(view.end_ns for view in ran) - min(view.begin_ns for view in ran)) / 1e9


def _serial_s(jobs: Sequence[Mapping[str, Any]], beside_s: float) -> float | None:
    """:param beside_s: what a host takes beside its jobs."""
    alone_s = [job["alone_s"] for job in jobs]
    return None if None in alone_s else sum(alone_s) + len(jobs) * max(0.0, beside_s)


_YIELDS = ("turns_s", "yield_side_by_side", "yield_in_turns", "modes", "trials_lost_s")


def _pages(pool: PoolView) -> dict[str, Any]:
    return {
        "page_bytes": pool.page_bytes,
        "pages_changed_owner": pool.pages_changed_owner,
        "pages_dropped": pool.pages_dropped,
        "parks": pool.parks,
        "park_s": pool.park_ns / 1e9,
        "pool_base": pool.pool_base,
        "pool_reserved_bytes": pool.pool_reserved_bytes,
    }


def _wakes(wakes: list[Wake]) -> dict[str, Any]:
    """From the free that made room to the waiter running again, and from there to its having the GIL."""
    return {
        "count": len(wakes),
        **_spread([wake.running_ns for wake in wakes]),
        "gil": _spread([wake.gil_ns for wake in wakes]),
    }


def _spread(latencies_ns: list[int]) -> dict[str, float | None]:
    if not latencies_ns:
        return {"median_s": None, "p99_s": None, "longest_s": None}
    ordered = sorted(latencies_ns)
    return {
        "median_s": ordered[len(ordered) // 2] / 1e9,
        "p99_s": ordered[len(ordered) * 99 // 100] / 1e9,
        "longest_s": ordered[-1] / 1e9,
    }


def _job(
    result: JobResult, view: JobView, queued_s: Sequence[float], solo_s: float | None = None
) -> dict[str, Any]:
    duration_s = (view.end_ns - view.begin_ns) / 1e9 if view.end_ns else None
    return {
        "name": result.name,
        "command": result.command,
        "status": result.status,
        "exit_code": result.exit_code,
        "message": result.message,
        "iterations": view.iterations,
        "iteration_kinds": view.iteration_kinds,
        "duration_s": duration_s,
        "solo_peak_bytes": view.solo_peak_bytes or None,
        "held_peak_bytes": view.held_peak_bytes,
        "live_peak_bytes": view.live_peak_bytes,
        "time_shift_s": view.mean_shift_s,
        "predicted_time_shift_s": _planned_shift_s(view),
        "door_wait_s": view.door_wait_ns / 1e9,
        "memory_wait_s": view.memory_wait_ns / 1e9,
        "memory_waits": view.waits,
        "waited_s": {**_waited(view), REASONS[QUEUED][0]: sum(queued_s)},
        "longest_wait_s": max([view.longest_wait_ns / 1e9, *queued_s]),
        "waits_forecast": view.forecast_waits,
        "forecast_error_s": _forecast_error_s(view),
        "shift_error_s": _shift_error_s(view),
        "longest_wake_s": view.longest_wake_ns / 1e9,
        "gil_wait_s": view.gil_wait_ns / 1e9,
        "overruns": view.overruns,
        "leases": view.leases,
        "batches_evaluated": view.batches,
        "copies_out": view.copies_out,
        "python_grants": view.python_grants,
        "remaining_bytes": view.held_bytes if view.end_ns else None,
        "alone_s": _alone_s(view, duration_s, solo_s),
        "memory": _memory(view),
    }


def _waited(view: JobView) -> dict[str, float]:
    """Seconds by reason, at doors and for memory together (`telemetry.decisions.REASONS`)."""
    words = [word for word, _ in REASONS[1:QUEUED]]
    return {word: getattr(view, f"waited_{word.replace('-', '_')}_ns") / 1e9 for word in words}


def _planned_shift_s(view: JobView) -> float | None:
    """The least time shift that the last plan permitted; None where the job could start at once, in any phase."""
    return view.predicted_shift_ns / 1e9 if view.shift_count and view.predicted_shift_ns else None


def _shift_error_s(view: JobView) -> float | None:
    """How far the last planned time shift is from the mean of those that were; None where none was planned."""
    mean_s, planned_s = view.mean_shift_s, _planned_shift_s(view)
    return None if mean_s is None or planned_s is None else abs(mean_s - planned_s)


def _forecast_error_s(view: JobView) -> float | None:
    """Mean distance between how long a wait was and how long it was forecast to be.

    Of the waits for a planned start; with `--explain` of all whose length curves could forecast.
    """
    waits = view.forecast_waits
    return view.forecast_error_ns / waits / 1e9 if waits else None


def _memory(view: JobView) -> dict[str, Any]:
    """Bytes; for where blocks lie see `shim/src/heap.h`. What is live is of the job's end."""
    return {
        "allocations": view.allocations,
        "frees": view.frees,
        "bad_frees": view.bad_frees,
        "live_bytes": view.live_bytes,
        "live_small_bytes": view.live_small_bytes,
        "live_persistent_bytes": view.live_persistent_bytes,
        "live_transient_bytes": view.live_transient_bytes,
        "live_extents_bytes": view.live_extents_bytes,
        "reserved_bytes": view.reserved_bytes,
        "peak_persistent_bytes": view.peak_persistent_bytes,
        "peak_activation_bytes": view.peak_activation_bytes,
        "peak_temporary_bytes": view.peak_temporary_bytes,
        "pages_received": view.pages_received,
        "mappings": view.mappings,
        "events": view.events,
        "device_waits": view.device_waits,
        "cpu_waits": view.cpu_waits,
    }


def _never_ran(result: JobResult, queued_s: Sequence[float]) -> dict[str, Any]:
    view = JobView(dict.fromkeys(_job_fields(), 0))
    return {**_job(result, view, queued_s), "duration_s": None, "alone_s": None}


def _job_fields() -> list[str]:
    from gpushare.telemetry.layout import SLOT

    return SLOT


def _alone_s(view: JobView, duration_s: float | None, solo_s: float | None) -> float | None:
    """:param solo_s: of one iteration, as far as the scheduler has counted any."""
    if duration_s is None or not view.solo_iteration_ns:
        return None
    solo_ns = view.solo_iteration_ns if solo_s is None else min(view.solo_iteration_ns, solo_s * 1e9)
    others_ns = view.gil_wait_before_ns + view.cpu_wait_before_ns
    waits_s = (view.door_wait_ns + view.memory_wait_ns + others_ns) / 1e9
    shared_solo_ns = view.shared_work / 1e6 * solo_ns
    slowed_s = (view.shared_iteration_sum_ns - shared_solo_ns) / 1e9
    return max(0.0, duration_s - waits_s - max(0.0, slowed_s))
