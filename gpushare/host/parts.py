"""All that a job has of its own: the parts of `isolation/` and of `framework/`, in their order."""

from __future__ import annotations

import sys
import traceback
from typing import Any

from gpushare.framework import (
    autocast,
    choices,
    compilation,
    compile_pools,
    compiler_aliases,
    compiler_memory,
    compiler_patches,
    cuda_captures,
    cuda_dropout,
    cuda_generators,
    cuda_graph_trees,
    cuda_replays,
    cuda_run_ahead,
    cuda_streams,
    cuda_workspaces,
    einsum,
    fake_guard,
    forward_ad,
    generators,
    global_hooks,
    interop_threads,
    operators,
    options,
    parametrizations,
    process_groups,
    profiler,
    safe_globals,
    storage_packages,
    switches,
    tracing,
)
from gpushare.framework import threads as torch_threads
from gpushare.isolation import (
    child_waits,
    children,
    collection,
    cut_waits,
    descriptors,
    directory,
    environment,
    exits,
    fork,
    hooks,
    imports,
    interrupts,
    joblib_pools,
    lasting_hooks,
    log_state,
    logger_names,
    modules,
    multiprocess,
    package_settings,
    packages,
    patches,
    path_hooks,
    programs,
    randomness,
    record_locks,
    settings,
    signals,
    stdio,
    system,
    threads,
    trace_hooks,
    tracebacks,
    warning_state,
    watchdogs,
)
from gpushare.isolation.context import JobContext

# The proxies of stdio are what `system` answers with, and `modules` adds to `system`; what scripts have patched is as
# before once `modules` has dropped what they have. `descriptors` takes what is open for the host's, so it is last.
_PARTS: tuple[Any, ...] = (
    stdio,
    system,
    hooks,
    patches,
    modules,
    path_hooks,
    interrupts,
    cut_waits,
    imports,
    packages,
    package_settings,
    joblib_pools,
    directory,
    environment,
    exits,
    signals,
    watchdogs,
    children,
    child_waits,
    programs,
    multiprocess,
    record_locks,
    fork,
    lasting_hooks,
    trace_hooks,
    tracebacks,
    settings,
    collection,
    randomness,
    log_state,
    logger_names,
    warning_state,
    generators,
    options,
    einsum,
    choices,
    tracing,
    operators,
    forward_ad,
    parametrizations,
    safe_globals,
    storage_packages,
    global_hooks,
    switches,
    interop_threads,
    autocast,
    process_groups,
    profiler,
    compilation,
    compile_pools,
    compiler_memory,
    compiler_aliases,
    compiler_patches,
    fake_guard,
    cuda_streams,
    cuda_generators,
    cuda_captures,
    cuda_replays,
    cuda_graph_trees,
    cuda_workspaces,
    cuda_dropout,
    cuda_run_ahead,
    descriptors,
)


def install() -> None:
    """Once per host, in its main thread, when torch is loaded and no job runs yet."""
    for part in _PARTS:
        part.install()
    threads.install(torch_threads.enter, torch_threads.leave)


def enter(job: JobContext) -> None:
    """The calling thread is the job's, and its script begins."""
    torch_threads.enter(job)
    for part in (*_PARTS, threads):
        part.enter(job)


def leave(job: JobContext) -> None:
    """The script and its exit handlers are through. The last in is the first out; garbage goes last."""
    for part in (threads, *(p for p in reversed(_PARTS) if p is not collection), collection):
        try:
            part.leave(job)
        except Exception:  # into the host's log: the other parts, and the other jobs, still count on us
            print(f"{job.name} could not leave {part.__name__}:", traceback.format_exc(), file=sys.__stderr__)
