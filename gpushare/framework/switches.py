"""Torch's process-wide switches: what each job has set, and the first conflict of each, named.

Number of threads: OpenMP keeps it per thread, so it is a job's own. The rest is one value for all jobs. Torch's
Python functions end in setters of `torch._C`, and these are watched.
"""

from __future__ import annotations

import torch

from gpushare.isolation import context
from gpushare.isolation.switch import Switch

# What a person calls it, the setter in torch._C, how to read it.
_SWITCHES: tuple[tuple[str, str, str], ...] = (
    ("the default dtype", "_set_default_dtype", "get_default_dtype"),
    ("deterministic algorithms", "_set_deterministic_algorithms", "_get_deterministic_algorithms"),
    ("float32 matmul precision", "_set_float32_matmul_precision", "_get_float32_matmul_precision"),
    ("cudnn.enabled", "_set_cudnn_enabled", "_get_cudnn_enabled"),
    ("cudnn.benchmark", "_set_cudnn_benchmark", "_get_cudnn_benchmark"),
    ("cudnn.deterministic", "_set_cudnn_deterministic", "_get_cudnn_deterministic"),
    ("cudnn.allow_tf32", "_set_cudnn_allow_tf32", "_get_cudnn_allow_tf32"),
    ("cuda.matmul.allow_tf32", "_set_cublas_allow_tf32", "_get_cublas_allow_tf32"),
    ("mkldnn.enabled", "_set_mkldnn_enabled", "_get_mkldnn_enabled"),
    ("flash attention", "_set_sdp_use_flash", "_get_flash_sdp_enabled"),
    ("memory-efficient attention", "_set_sdp_use_mem_efficient", "_get_mem_efficient_sdp_enabled"),
    ("math attention", "_set_sdp_use_math", "_get_math_sdp_enabled"),
    ("anomaly detection", "set_anomaly_enabled", "is_anomaly_enabled"),
)


_switches: list[Switch] = []
_threads = torch.get_num_threads()
_set_num_threads = torch.set_num_threads


def set_num_threads(count: int) -> None:
    """As `torch.set_num_threads`, for the calling job's threads."""
    _set_num_threads(count)
    if job := context.current():
        job.values[set_num_threads] = count


def enter_thread(job: context.JobContext) -> None:
    """The calling thread computes with as many threads as the job has chosen."""
    count = job.values.get(set_num_threads, _threads)
    if torch.get_num_threads() != count:
        _set_num_threads(count)


def install() -> None:
    """Watch the setters that this torch has."""
    for title, setter, getter in _SWITCHES:
        if hasattr(torch._C, setter) and hasattr(torch._C, getter):
            watched = Switch(title, getattr(torch._C, setter), getattr(torch._C, getter))
            _switches.append(watched)
            setattr(torch._C, setter, watched.function())
    torch.set_num_threads = set_num_threads


def enter(job: context.JobContext) -> None:
    """Nothing: jobs count from `isolation.settings` on."""


def leave(job: context.JobContext) -> None:
    """The job's wishes no longer count."""
    for watched in _switches:
        watched.leave(job)
