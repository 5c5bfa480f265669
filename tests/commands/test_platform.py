"""Where gpushare can't run at all."""

import sysconfig

import pytest

from gpushare.commands import common
from gpushare.errors import UsageError


def test_a_python_without_its_lock_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    common.check_platform()
    monkeypatch.setitem(sysconfig.get_config_vars(), "Py_GIL_DISABLED", 1)
    with pytest.raises(UsageError, match="needs a python with a global interpreter lock"):
        common.check_platform()
