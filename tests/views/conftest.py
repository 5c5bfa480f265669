import os

import pytest

from gpushare.telemetry import layout


@pytest.fixture
def memory() -> int:
    descriptor = os.memfd_create("telemetry")
    os.ftruncate(descriptor, layout.TOTAL_BYTES)
    return descriptor
