"""Runs that can be asked."""

import os
import tempfile
from pathlib import Path

import pytest

from gpushare.launcher import running


@pytest.mark.parametrize("length", [1, 150])
def test_a_run_is_found_and_asked_however_long_the_name_of_its_folder_is(
    length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("x" * length)))
    listener = running.Listener(lambda question: {"heard": question})
    try:
        assert running.processes() == [os.getpid()]
        assert running.ask(os.getpid(), {"op": "about"}) == {"heard": {"op": "about"}}
    finally:
        listener.close()
    assert running.processes() == []
