"""Torch's process-wide switches: what each job has set, and the first conflict of each, named.

Number of threads: OpenMP keeps it per thread, so it is a job's own. The rest is one value for all jobs. Torch's
Python functions end in setters of `torch._C`, and these are watched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gpushare.isolation import context

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


class _Switch:
    def __init__(self, title: str, setter: Callable[..., Any], getter: Callable[[], Any]) -> None:
        self.title, self._setter, self._getter = title, setter, getter
        self.host = getter()
        self._wanted: dict[context.JobContext, Any] = {}
        self._told = False

    def set(self, *args: Any, **kwargs: Any) -> Any:
        """As the setter; tells the first time that jobs disagree."""
        result = self._setter(*args, **kwargs)
        job = context.current()
        if job and context.in_host():
            self._wanted[job] = self._getter()
            self._tell(job)
        return result

    def _tell(self, job: context.JobContext) -> None:
        value = self._wanted[job]
        others = [o for o in _live if o is not job and self._wanted.get(o, self.host) != value]
        if others and not self._told:
            self._told = True
            names = ", ".join(f"{o.name} ({self._wanted.get(o, self.host)})" for o in others)
            job.note(
                f"{job.name} sets {self.title} to {value}; torch has one value for the whole process, so it "
                f"holds for {names} too. Run jobs that differ in it one after the other"
            )

    def leave(self, job: context.JobContext) -> None:
        """Back to the host's value when nobody who set it is left."""
        if job in self._wanted:
            del self._wanted[job]
            if not self._wanted and self._getter() != self.host:
                self._setter(self.host)


_live: list[context.JobContext] = []
_switches: list[_Switch] = []
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
            switch = _Switch(title, getattr(torch._C, setter), getattr(torch._C, getter))
            _switches.append(switch)
            setattr(torch._C, setter, switch.set)
    torch.set_num_threads = set_num_threads


def enter(job: context.JobContext) -> None:
    """From now on the job's wishes count."""
    _live.append(job)


def leave(job: context.JobContext) -> None:
    """They no longer do."""
    _live.remove(job)
    for switch in _switches:
        switch.leave(job)
