"""Whether the installed torch has code for the GPU. Torch itself only warns, and fails at the first kernel."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gpushare.framework.selfcheck import SelfCheckError


def check() -> None:
    """Torch has initialised CUDA.

    :raises SelfCheckError: it has no code for the GPU.
    """
    capability = torch.cuda.get_device_capability(0)
    built_for = torch.cuda.get_arch_list()
    if not runs_on(capability, built_for):
        raise SelfCheckError(
            f"torch {torch.__version__} has no code for {torch.cuda.get_device_name(0)}, whose compute capability is "
            f"{capability[0]}.{capability[1]}: it is built for {', '.join(built_for)}. Install another torch "
            "(https://pytorch.org/get-started/locally), or use --device cpu"
        )


def runs_on(capability: tuple[int, int], built_for: Sequence[str]) -> bool:
    """Whether code for these (`sm_90`, `sm_90a`, `compute_90`) runs on a GPU of that compute capability.

    Binary code runs on its own major version from its minor one on, PTX on all later ones (CUDA C++ Programming
    Guide, "Binary Compatibility", "PTX Compatibility"); code with a letter on its own version only. An empty list
    says nothing.
    """
    return not built_for or any(_runs(capability, name) for name in built_for)


def _runs(capability: tuple[int, int], name: str) -> bool:
    kind, _, version = name.partition("_")
    digits = version.rstrip("af")
    if not digits.isdecimal():
        return False
    major, minor = divmod(int(digits), 10)
    if version.endswith("a"):
        return capability == (major, minor)
    if kind == "compute" and digits == version:
        return capability >= (major, minor)
    return capability[0] == major and capability[1] >= minor
