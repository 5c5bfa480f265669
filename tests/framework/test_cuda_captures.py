"""Captures of CUDA graphs beside other jobs: what needs no GPU of it."""

from typing import Any

import pytest
import torch

from gpushare.framework import cuda_captures


def test_pinned_memory_is_given_back_by_a_job_that_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch asks for that before each capture; it is the memory of all jobs."""
    given_back: list[int] = []
    monkeypatch.setattr(torch._C, "_host_emptyCache", lambda: given_back.append(1), raising=False)
    cuda_captures._keep_pinned_memory()
    functions: Any = torch._C
    one: Any = object()
    other: Any = object()
    cuda_captures.enter(one)
    functions._host_emptyCache()
    assert len(given_back) == 1
    cuda_captures.enter(other)
    functions._host_emptyCache()
    assert len(given_back) == 1
    cuda_captures.leave(one)
    functions._host_emptyCache()
    assert len(given_back) == 2
    cuda_captures.leave(other)


def test_a_torch_that_has_none_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch._C, "_host_emptyCache", raising=False)
    cuda_captures._keep_pinned_memory()
    assert not hasattr(torch._C, "_host_emptyCache")
