"""Torch's process-wide switches, per job; of those that can't be split, the first conflict is named.

The values of a job lie in the shim (`shim/src/interpose_context.cpp`); torch's own setters and getters work on them.
Each switch is tried at start, and one that this torch does not split is watched.

Number of threads: OpenMP keeps it per thread, so it is a job's own as well.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
import torch.backends.mha

from gpushare.isolation import context, imports, switch
from gpushare.isolation.replace import replace_everywhere
from gpushare.isolation.switch import Switch
from gpushare.native import shim


@dataclass(frozen=True)
class _Setting:
    """What a person calls it, its functions, and a value to try it with; None: it is true or false."""

    title: str
    setter: str
    getter: str
    trial: Any = None
    module: Any = torch._C

    def exists(self) -> bool:
        return hasattr(self.module, self.setter) and hasattr(self.module, self.getter)

    def set(self, value: Any) -> None:
        getattr(self.module, self.setter)(value)

    def get(self) -> Any:
        return getattr(self.module, self.getter)()


_SETTINGS = (
    _Setting("the default dtype", "_set_default_dtype", "get_default_dtype", torch.float64),
    _Setting("deterministic algorithms", "_set_deterministic_algorithms", "_get_deterministic_algorithms"),
    _Setting(
        "filling of uninitialized memory",
        "_set_deterministic_fill_uninitialized_memory",
        "_get_deterministic_fill_uninitialized_memory",
    ),
    _Setting(
        "float32 matmul precision", "_set_float32_matmul_precision", "_get_float32_matmul_precision", "high"
    ),
    _Setting("cudnn.enabled", "_set_cudnn_enabled", "_get_cudnn_enabled"),
    _Setting("cudnn.benchmark", "_set_cudnn_benchmark", "_get_cudnn_benchmark"),
    _Setting("cudnn.deterministic", "_set_cudnn_deterministic", "_get_cudnn_deterministic"),
    _Setting("cudnn.allow_tf32", "_set_cudnn_allow_tf32", "_get_cudnn_allow_tf32"),
    _Setting("cuda.matmul.allow_tf32", "_set_cublas_allow_tf32", "_get_cublas_allow_tf32"),
    _Setting("mkldnn.enabled", "_set_mkldnn_enabled", "_get_mkldnn_enabled"),
    _Setting("mkldnn.deterministic", "_set_mkldnn_deterministic", "_get_mkldnn_deterministic"),
    _Setting("NNPACK", "_set_nnpack_enabled", "_get_nnpack_enabled"),
    _Setting("flash attention", "_set_sdp_use_flash", "_get_flash_sdp_enabled"),
    _Setting("memory-efficient attention", "_set_sdp_use_mem_efficient", "_get_mem_efficient_sdp_enabled"),
    _Setting("math attention", "_set_sdp_use_math", "_get_math_sdp_enabled"),
    _Setting("cuDNN's attention", "_set_sdp_use_cudnn", "_get_cudnn_sdp_enabled"),
    _Setting("repeated warnings", "_set_warnAlways", "_get_warnAlways"),
    _Setting("anomaly detection", "set_anomaly_enabled", "is_anomaly_enabled"),
    _Setting(
        "the fast path of attention",
        "set_fastpath_enabled",
        "get_fastpath_enabled",
        module=torch.backends.mha,
    ),
)

# One for all jobs by their nature, and not tried: to set the first one warns, once in a process.
_OF_THE_PROCESS = (
    _Setting("CUDA's sync debug mode", "_cuda_set_sync_debug_mode", "_cuda_get_sync_debug_mode"),
    _Setting("TunableOp", "_cuda_tunableop_enable", "_cuda_tunableop_is_enabled"),
)

_split: list[_Setting] = []
_watched: list[Switch] = []
_set_by_imports: dict[_Setting, Any] = {}
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


def _is_split(setting: _Setting) -> bool:
    """Whether a value that is set for one account is seen there, and not by the process."""
    host = setting.get()
    value = not host if setting.trial is None else setting.trial
    with shim.switches_of(shim.NO_JOB):
        fresh = setting.get()
        try:
            setting.set(value)
        except RuntimeError:  # nothing for this machine
            return False
        inside = setting.get()
        with shim.switches_of(0):
            outside = setting.get()
        setting.set(host)
    if fresh != host:  # torch sets it when it is imported
        _set_by_imports[setting] = host
    return bool(inside == value and outside == host)


def _watch(setting: _Setting) -> None:
    setter = getattr(setting.module, setting.setter)
    watched = Switch(setting.title, setter, setting.get)
    _watched.append(watched)
    replace_everywhere([(setter, watched.function())], but="")  # `torch` has some of `torch._C` by name


def _values() -> dict[_Setting, Any]:
    values = {}
    for setting in _split:
        with suppress(RuntimeError):  # torch refuses to tell what old and new names of it contradict
            values[setting] = setting.get()
    return values


def _spread(before: dict[_Setting, Any]) -> None:
    """What a shared module has set when it was imported holds for all jobs, as it is imported once."""
    for setting, value in _values().items():
        if setting in before and value != before[setting]:
            _set_by_imports[setting] = value
            for job in switch.live.copy():
                _set_where_unset(job, setting, before[setting], value)


def _set_where_unset(job: context.JobContext, setting: _Setting, unset: Any, value: Any) -> None:
    with shim.switches_of(job.account), suppress(RuntimeError):
        if setting.get() == unset:
            setting.set(value)


def install() -> None:
    """Try each switch that this torch has; watch those that are one for all jobs."""
    for setting in filter(_Setting.exists, _SETTINGS):
        if _is_split(setting):
            _split.append(setting)
        else:
            _watch(setting)
    if shim.device() >= 0:
        for setting in filter(_Setting.exists, _OF_THE_PROCESS):
            _watch(setting)
    imports.around_shared(_values, _spread)
    torch.set_num_threads = set_num_threads


def enter(job: context.JobContext) -> None:
    """The job begins with a fresh process's values, and those that imports have set."""
    for setting, value in _set_by_imports.copy().items():
        setting.set(value)


def leave(job: context.JobContext) -> None:
    """The job's wishes no longer count."""
    for watched in _watched:
        watched.leave(job)
