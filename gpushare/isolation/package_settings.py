"""Settings and registries of well-known packages with compiled code, of which there is one copy: each job has its own.

Matplotlib's `rcParams` and color maps, pandas' options, the file systems of fsspec, the operations of torch's data
pipes by the names that scripts give them.
"""

from __future__ import annotations

import types
from typing import Any

from gpushare.isolation import context, imports, patches
from gpushare.isolation.job_dict import JobDict
from gpushare.isolation.perjob import PerJob
from gpushare.isolation.replace import replace_everywhere
from gpushare.isolation.swapped_names import SwappedNames, has_names

_Raw = dict[str, Any]


def _split_parameters(module: types.ModuleType) -> None:
    """`rcParams` checks what is set, resolves what is asked for, and keeps it by a few methods: those are per job."""
    if not has_names(module, "rcParams", "RcParams"):
        return
    parameters: Any = module.rcParams
    kind: Any = module.RcParams
    if not has_names(kind, "_set", "_get", "_update_raw"):
        return
    host = dict(dict.items(parameters))
    own: PerJob[_Raw] = PerJob(host, lambda: dict(host), imports_set_all=True)

    class Parameters(kind):  # type: ignore[misc]
        def _set(self, key: str, value: Any) -> None:
            own.get()[key] = value

        def _get(self, key: str) -> Any:
            return own.get()[key]

        def _update_raw(self, other: Any) -> None:
            raw = isinstance(other, kind) and not isinstance(other, Parameters)
            own.get().update(dict.items(other) if raw else other)

        def _ensure_has_backend(self) -> None:
            own.get().setdefault("backend", host["backend"])

        def __contains__(self, key: object) -> bool:
            return key in own.get()

        def __iter__(self) -> Any:
            return iter(sorted(own.get()))

        def __len__(self) -> int:
            return len(own.get())

        def copy(self) -> Any:
            copied = kind()
            copied._update_raw(own.get())
            return copied

        def find_all(self, pattern: str) -> Any:
            return self.copy().find_all(pattern)

        def __reduce_ex__(self, version: Any) -> Any:
            return kind, (dict(self.items()),)

    Parameters.__name__, Parameters.__qualname__ = kind.__name__, kind.__qualname__
    parameters.__class__ = Parameters


def _split_back_end(module: types.ModuleType) -> None:
    if has_names(module, "_backend_mod", "_get_backend_mod", "switch_backend"):
        own = SwappedNames(module, ("_backend_mod",))
        for name in ("_get_backend_mod", "switch_backend"):
            setattr(module, name, own.around(vars(module)[name]))


def _split_color_maps(module: types.ModuleType) -> None:
    if has_names(module, "_colormaps") and has_names(module._colormaps, "_cmaps"):
        module._colormaps._cmaps = JobDict(module._colormaps._cmaps, dict)


def _split_options(module: types.ModuleType) -> None:
    """All of pandas' modules are there, and some have taken the dictionary by a name of their own."""
    config = module._config.config
    if has_names(config, "_global_config", "options") and has_names(config.options, "d"):
        shared = config._global_config
        own = JobDict(shared)
        replace_everywhere([(shared, own)], but="")
        object.__setattr__(config.options, "d", own)
    for kind in (module.DataFrame, module.Series, module.Index):
        patches.also_by_packages(kind)  # `register_dataframe_accessor` and its kin


def _split_plotting(module: types.ModuleType) -> None:
    if has_names(module, "_backends"):
        names: Any = module
        names._backends = JobDict(module._backends, dict)


class _JobList(list[Any]):
    """Of one item, which each job has for itself."""

    def __init__(self, host: list[Any]) -> None:
        super().__init__(host)
        self._own: PerJob[list[Any]] = PerJob(host, lambda: [None])

    def __getitem__(self, index: Any) -> Any:
        return self._own.get()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._own.get()[index] = value


def _split_loop(module: types.ModuleType) -> None:
    """The loop that reads and writes, and its thread, which is of the job that first does."""
    if has_names(module, "loop", "iothread"):
        names: Any = module
        names.loop, names.iothread = _JobList(module.loop), _JobList(module.iothread)


def _split_file_systems(module: types.ModuleType) -> None:
    if has_names(module, "_registry", "registry", "known_implementations"):
        shown, kept, known = module.registry, module._registry, module.known_implementations
        own = JobDict(kept, dict)
        replace_everywhere(
            [(shown, types.MappingProxyType(own)), (kept, own), (known, JobDict(known))], but=""
        )


def _split_pipes(module: types.ModuleType) -> None:
    for name in ("IterDataPipe", "MapDataPipe"):
        if has_names(module, name) and has_names(kind := getattr(module, name), "functions"):
            kind.functions = JobDict(kind.functions, dict)


def install() -> None:
    """When a job imports one of them."""
    imports.when_imported("matplotlib", _split_parameters)
    imports.when_imported("matplotlib.cm", _split_color_maps)
    imports.when_imported("matplotlib.pyplot", _split_back_end)
    imports.when_imported("pandas", _split_options)
    imports.when_imported("pandas.plotting._core", _split_plotting)
    imports.when_imported("fsspec.registry", _split_file_systems)
    imports.when_imported("fsspec.asyn", _split_loop)
    imports.when_imported("torch.utils.data.datapipes.datapipe", _split_pipes)


def enter(job: context.JobContext) -> None:
    """Nothing: a job begins with a copy of what the packages have put there themselves."""


def leave(job: context.JobContext) -> None:
    """Nothing: they go with the context."""
