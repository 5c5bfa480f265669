"""Whose compiled forms torch finds where it has no regions: by backends that are equal."""

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from gpushare.framework import compiler_memory


class Backend:
    """As torch's wrappers of backends are."""

    def __init__(self, name: str, **config: bool) -> None:
        self.compiler_name, self.config = name, config

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Backend) and vars_of(self) == vars_of(other)


def vars_of(backend: Backend) -> tuple[str, dict[str, bool]]:
    return backend.compiler_name, backend.config


class Job:
    number = 1

    def get(self) -> int:
        return self.number


GRAPHS = {"triton.cudagraphs": True}


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Iterator[Job]:
    found = Job()
    monkeypatch.setattr(compiler_memory, "_number", found)
    before: dict[str, Any] = {name: getattr(Backend, name) for name in ("__init__", "__eq__")}
    compiler_memory.equal_within_a_job(Backend)
    yield found
    for name, was in before.items():
        setattr(Backend, name, was)


@pytest.mark.parametrize(
    ("made", "alike"),
    [
        (lambda: Backend("inductor", **GRAPHS), False),
        (lambda: Backend("cudagraphs"), False),
        (lambda: Backend("inductor"), True),
        (lambda: Backend("eager"), True),
    ],
)
def test_forms_with_graphs_are_each_jobs_own(made: Any, alike: bool, job: Job) -> None:
    first, again = made(), made()
    job.number = 2
    others = made()
    assert first == again and others == made()
    assert (first == others) is alike and (others == first) is alike
    assert first != Backend("another")


def test_a_copy_finds_what_its_original_has_compiled(job: Job) -> None:
    backend = Backend("inductor", **GRAPHS)
    job.number = 2
    assert copy.deepcopy(backend) == backend == pickle.loads(pickle.dumps(backend))


def test_one_that_was_made_before_is_no_jobs(job: Job) -> None:
    early = Backend.__new__(Backend)
    early.compiler_name, early.config = "inductor", dict(GRAPHS)
    assert early == early and early != Backend("inductor", **GRAPHS)
