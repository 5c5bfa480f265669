"""A job's profile as a file: versioned JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpushare.errors import UsageError

FORMAT = "gpushare-profile"
VERSION = 1


@dataclass(frozen=True)
class Profile:
    """What one iteration of a job needs.

    Bytes in bytes, times in seconds. `held_bytes[k]` and `time_s[k]` belong to the k-th allocation of the
    iteration. Persistent, activation and temporary bytes are live bytes at the peak.
    """

    command: str
    torch: str
    device: str
    page_bytes: int
    persistent_bytes: int
    activation_bytes: int
    temporary_bytes: int
    peak_held_bytes: int
    peak_live_bytes: int
    residue_bytes: int
    iteration_s: float
    held_bytes: tuple[int, ...]
    time_s: tuple[float, ...]

    @staticmethod
    def from_host(command: str, message: dict[str, Any]) -> Profile:
        """From what the host says of a job."""
        fields = {k: v for k, v in message.items() if k != "curve"}
        curve = message["curve"]
        return Profile(
            command=command,
            held_bytes=tuple(curve["held_bytes"]),
            time_s=tuple(curve["time_s"]),
            **fields,
        )

    def to_json(self) -> dict[str, Any]:
        """The file's content."""
        fields = asdict(self)
        curve = {"held_bytes": fields.pop("held_bytes"), "time_s": fields.pop("time_s")}
        return {"format": FORMAT, "version": VERSION, **fields, "curve": curve}

    @staticmethod
    def from_json(content: dict[str, Any], where: str) -> Profile:
        """Read a file's content.

        :raises UsageError: it is no profile, or of a version that this gpushare does not read.
        """
        if content.get("format") != FORMAT:
            raise UsageError(f"{where} is not a gpushare profile")
        if content.get("version") != VERSION:
            raise UsageError(
                f"{where} has profile version {content.get('version')}, this gpushare reads {VERSION}"
            )
        body = {k: v for k, v in content.items() if k not in ("format", "version", "command")}
        try:
            return Profile.from_host(content["command"], body)
        except (KeyError, TypeError) as error:
            raise UsageError(f"{where} is damaged: {error}") from None

    def save(self, path: Path) -> None:
        """Write the file whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(self.to_json()), encoding="utf-8")
        part.replace(path)

    @staticmethod
    def load(path: Path) -> Profile:
        """Read a file.

        :raises UsageError: see `from_json`; or it is no JSON.
        """
        try:
            return Profile.from_json(json.loads(path.read_text(encoding="utf-8")), str(path))
        except json.JSONDecodeError as error:
            raise UsageError(f"{path} is damaged: {error}") from None
