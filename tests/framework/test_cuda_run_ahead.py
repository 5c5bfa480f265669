"""The bound on iterations in flight; what it does on streams is in `cuda/jobs.py`."""

import pytest

from gpushare.framework import cuda_run_ahead


@pytest.mark.parametrize(
    ("iteration_s", "limit"),
    [(10.0, 1), (0.005, 1), (0.004, 2), (0.001, 5), (1e-4, 50), (1e-6, 64), (0.0, 64)],
)
def test_short_iterations_have_slack(iteration_s: float, limit: int) -> None:
    assert cuda_run_ahead.limit_for(iteration_s) == limit
