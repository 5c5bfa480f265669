"""Where profiles are kept: by script, arguments, torch and device."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
from pathlib import Path

from gpushare.errors import UsageError
from gpushare.jobs import JobSpec
from gpushare.profiles.profile import Profile


def directory() -> Path:
    """`$XDG_CACHE_HOME/gpushare/profiles`."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "gpushare" / "profiles"


def key_for(spec: JobSpec, device: str) -> str | None:
    """What names the job's profile; None if what it runs can't be told from its source."""
    if spec.source is None:
        return None
    what = {
        "source": hashlib.sha256(spec.source.read_bytes()).hexdigest(),
        "kind": spec.kind,
        "args": spec.args,
        "env": sorted(spec.env.items()),
        "threads": os.environ.get("OMP_NUM_THREADS", ""),
        "torch": importlib.metadata.version("torch").split("+")[0],
        "device": device,
    }
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()


def path_for(spec: JobSpec, device: str) -> Path | None:
    """File of the job's profile; None as `key_for`."""
    key = key_for(spec, device)
    return directory() / f"{key}.json" if key else None


def find(spec: JobSpec, device: str) -> Profile | None:
    """The saved profile; None if there is none that this version reads."""
    path = path_for(spec, device)
    if path is None or not path.exists():
        return None
    try:
        return Profile.load(path)
    except UsageError:
        return None


def save(spec: JobSpec, device: str, profile: Profile) -> Path | None:
    """Keep a profile; the path, or None if it can't be kept."""
    path = path_for(spec, device)
    if path is None:
        return None
    try:
        profile.save(path)
    except OSError:
        return None
    return path
