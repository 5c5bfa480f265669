"""Where files of the user's are kept."""

import os
import pwd
from pathlib import Path

import pytest

from gpushare import places
from gpushare.errors import UsageError
from gpushare.launcher import logs
from gpushare.profiles import Profile, store


@pytest.fixture
def without_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """As in a container that was started with a bare user number; where its own folder is then."""

    def unknown(number: int) -> pwd.struct_passwd:
        raise KeyError(number)

    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.setattr(places.tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"gpushare-{os.getuid()}"


def test_a_variable_names_it_else_it_is_below_the_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", "/named")
    assert places.base("XDG_STATE_HOME", ".local/state") == Path("/named")
    monkeypatch.setenv("XDG_STATE_HOME", "")
    assert places.base("XDG_STATE_HOME", ".local/state") == tmp_path / ".local" / "state"


def test_a_user_without_a_home_has_a_folder_among_the_temporary_files(without_home: Path) -> None:
    assert logs.run_directory().parent == without_home / ".local" / "state" / "gpushare"
    assert store.directory() == without_home / ".cache" / "gpushare" / "profiles"
    assert without_home.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_can_enter_is_none(without_home: Path) -> None:
    without_home.mkdir(mode=0o755)
    without_home.chmod(0o755)
    with pytest.raises(UsageError, match=r"not a folder of yours alone; set HOME or XDG_STATE_HOME"):
        logs.run_directory()
    assert store.load("0" * 64) is None
    profile = Profile.__new__(Profile)
    with (
        pytest.raises(store.ProfileError, match="set HOME or XDG_CACHE_HOME"),
        pytest.MonkeyPatch.context() as m,
    ):
        m.setattr(Profile, "what_is_wrong", lambda _: None)
        store.save("0" * 64, profile)
