"""Which GPUs a torch has code for."""

import pytest

from gpushare.framework.cuda_capability import runs_on

BUILT_FOR = ["sm_75", "sm_80", "sm_86", "sm_90a", "sm_100", "compute_120"]


@pytest.mark.parametrize(
    ("capability", "runs"),
    [
        ((7, 0), False),
        ((7, 5), True),
        ((8, 0), True),
        ((8, 9), True),
        ((9, 0), True),
        ((10, 3), True),
        ((11, 0), False),
        ((12, 0), True),
        ((13, 0), True),
    ],
)
def test_binary_code_of_its_major_version_or_earlier_ptx(capability: tuple[int, int], runs: bool) -> None:
    assert runs_on(capability, BUILT_FOR) is runs


def test_an_empty_list_says_nothing() -> None:
    assert runs_on((9, 0), [])
    assert not runs_on((9, 1), ["sm_90a"])
