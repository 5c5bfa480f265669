"""How many files may be open at once."""

import resource

import pytest

from gpushare.errors import UsageError
from gpushare.launcher import open_files


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The limits that were in force, the last one is."""
    found = [(64, 4096)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: found[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, wanted: found.append(wanted))
    return found


def test_a_low_limit_is_raised_for_many_jobs(limits: list[tuple[int, int]]) -> None:
    assert open_files.make_room(8) == 64
    assert limits[-1] == (224, 4096)
    assert open_files.make_room(8) is None and len(limits) == 2


@pytest.mark.parametrize("limit", [(1024, 1024), (1024, 1 << 20), (-1, -1)])
def test_a_usual_one_is_left_alone(limit: tuple[int, int], limits: list[tuple[int, int]]) -> None:
    limits[:] = [limit]
    assert open_files.make_room(63) is None and limits == [limit]


def test_it_is_raised_no_further_than_allowed(limits: list[tuple[int, int]]) -> None:
    limits[:] = [(64, 100)]
    assert open_files.make_room(8) == 64 and limits[-1] == (100, 100)
    assert open_files.make_room(8) is None
    with pytest.raises(UsageError, match="9 jobs need 104 open files at least, and no more than 100"):
        open_files.make_room(9)
    limits[:] = [(39, 39)]
    with pytest.raises(UsageError, match="a job needs 40 open files"):
        open_files.make_room(1)
