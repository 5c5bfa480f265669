"""Runs that can be asked."""

import os
import socket
import tempfile
from pathlib import Path

import pytest

from gpushare import places
from gpushare.errors import UsageError
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


@pytest.mark.parametrize("left", [False, True], ids=["none", "a socket without its run"])
def test_a_run_that_is_not_there_is_told_as_that(
    left: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    if left:
        with socket.socket(socket.AF_UNIX) as ended:
            ended.bind(str(places.of_mine() / "1.sock"))
    with pytest.raises(
        UsageError, match=r"^no run 1 of yours is under way, or it was started with another TMPDIR"
    ):
        running.ask(1, {"op": "about"})
