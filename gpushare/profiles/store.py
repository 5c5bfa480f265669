"""Where profiles are kept: by script, arguments, torch and device."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
from dataclasses import replace
from pathlib import Path

from gpushare import places
from gpushare.errors import GpushareError, UsageError
from gpushare.jobs import JobSpec
from gpushare.profiles.profile import Profile


class ProfileError(GpushareError):
    """A profile can't be kept."""


def directory() -> Path:
    """`$XDG_CACHE_HOME/gpushare/profiles`."""
    return places.base("XDG_CACHE_HOME", ".cache") / "gpushare" / "profiles"


def key_for(spec: JobSpec, device: str) -> str | None:
    """What names the job's profile; None if what it runs can't be told from its source.

    To be asked before the job runs: its script may have been edited when it ends.
    """
    if spec.source is None:
        return None
    try:
        source = spec.source.read_bytes()
    except OSError:
        return None
    what = {
        "source": hashlib.sha256(source).hexdigest(),
        "kind": spec.kind,
        "args": spec.args,
        "env": sorted(spec.env.items()),
        "threads": os.environ.get("OMP_NUM_THREADS", ""),
        "torch": importlib.metadata.version("torch").split("+")[0],
        "device": device,
    }
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()


def find(spec: JobSpec, device: str) -> Profile | None:
    """The saved profile; None if there is none that this version reads."""
    key = key_for(spec, device)
    return None if key is None else load(key)


def load(key: str) -> Profile | None:
    """The profile saved under a `key_for`; None if there is none that this version reads."""
    try:
        return replace(Profile.load(directory() / f"{key}.json"), key=key)  # older files do not say it
    except UsageError:
        return None


def save(key: str | None, profile: Profile) -> Path:
    """Keep a profile under its `key_for`.

    :raises ProfileError: it can't be kept.
    """
    if key is None:
        raise ProfileError("what the job runs can't be told from a source file")
    if wrong := profile.what_is_wrong():
        raise ProfileError(wrong)
    try:
        path = directory() / f"{key}.json"
        profile.save(path)
    except (OSError, UsageError) as error:
        raise ProfileError(str(error)) from None
    return path
