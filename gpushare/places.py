"""Where files of the user's are kept."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from gpushare.errors import UsageError


def base(variable: str, below_home: str) -> Path:
    """The folder that an environment variable names, else one below the user's home.

    A user who has none, as in a container that was started with a bare number, has it among the temporary files.

    :raises UsageError: what is there is someone else's.
    """
    if named := os.environ.get(variable):
        return Path(named)
    try:
        home = Path.home()
    except RuntimeError:
        home = _home_of_nobody(variable)
    return home / below_home


def of_mine() -> Path:
    """A folder of the user's among the temporary files: it is the same from every login, and outlasts them.

    :raises OSError: it can't be made, or it is someone else's.
    """
    path = Path(tempfile.gettempdir()) / f"gpushare-{os.getuid()}"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = path.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077 or not path.is_dir():
        raise PermissionError(f"{path} is not a folder of yours alone")
    return path


def _home_of_nobody(variable: str) -> Path:
    try:
        return of_mine()
    except OSError as error:
        raise UsageError(
            f"user {os.getuid()} has no home directory, and among the temporary files there is no place either: "
            f"{error}; set HOME or {variable}"
        ) from None
