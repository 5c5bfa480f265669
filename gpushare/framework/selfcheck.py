"""Proof at start that the shim really took over, since a later torch could inline what it replaces."""

from __future__ import annotations

import torch

from gpushare.native import shim


class SelfCheckError(Exception):
    """Torch does not allocate, draw random numbers or build graphs through the shim."""


def run(*, pooled: bool = True) -> None:
    """Allocate and draw once. `pooled`: the host's memory is the pool's.

    :raises SelfCheckError: with what did not take effect and the version of torch.
    """
    probe = torch.empty(1 << 18)
    if pooled and shim.owner(probe.data_ptr()) != 0:
        raise SelfCheckError(
            f"torch {torch.__version__} does not allocate CPU tensors through c10::alloc_cpu as this "
            "version of gpushare needs; use torch 2.11 to 2.15"
        )
    torch.ones(1, requires_grad=True) * 2
    if not shim.graph_seen():
        raise SelfCheckError(
            f"torch {torch.__version__} does not number its graph nodes through "
            "at::sequence_number::get_and_increment as this version of gpushare needs; use torch 2.11 to 2.15"
        )
    generator = torch.Generator().manual_seed(20240229)
    expected = torch.rand(4, generator=torch.Generator().manual_seed(20240229))
    shim.thread_enter(0, generator._cdata)
    try:
        drawn = torch.rand(4)
    finally:
        shim.thread_leave()
    if not torch.equal(drawn, expected):
        raise SelfCheckError(
            f"torch {torch.__version__} does not take its default generator from "
            "at::detail::getDefaultCPUGenerator as this version of gpushare needs; use torch 2.11 to 2.15"
        )
