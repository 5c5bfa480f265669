"""A job's profile as a file: versioned JSON."""

from __future__ import annotations

import json
from dataclasses import MISSING, asdict, dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from gpushare.errors import UsageError
from gpushare.jobs import PROFILE_FORMAT
from gpushare.profiles.kinds import MOST_KINDS, IterationKind, is_time

FORMAT = PROFILE_FORMAT
_GONE = ("python_share",)  # fields of earlier versions
VERSION, READ = 6, (1, 2, 3, 4, 5, 6)
_LEAST_PAGE_BYTES = 4096  # as the shim has it


@dataclass(frozen=True)
class Profile:
    """What one iteration of a job needs.

    Bytes in bytes, times in seconds. `held_bytes[k]` and `time_s[k]` belong to the k-th allocation of the
    iteration. Persistent, activation and temporary bytes are live bytes at the peak.

    `iteration_s` is the time of a short iteration; `spread`: by what factors iterations take longer alone, each equally
    often (`framework.shares`), empty where that was not measured, before version 5, or where there are `kinds`.
    `cores_busy`: CPU seconds of all threads per second of its solo iterations. `gil_share`: of their time, in which the
    GIL is held. `sensitivity` and `pressure`: what it feels of a thread that copies memory, and does to it
    (`framework.companions`). None where that was not measured: the last three only `gpushare profile` does.
    `iterations` is how many the job did when it ran to its end; None if it never did. `kinds` are those of its
    iterations, if there are several (from version 3 on); then `held_bytes` is the most of all, and `time_s` that of the
    profiled one. `key` names what was measured (`store.key_for`), also where the profile is not kept: what runs have
    taught of it is found by that. None in files before version 6.
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
    iterations: int | None = None
    cores_busy: float | None = None
    gil_share: float | None = None
    sensitivity: float | None = None
    pressure: float | None = None
    spread: tuple[float, ...] = ()
    kinds: tuple[IterationKind, ...] = ()
    key: str | None = None

    @property
    def mean_iteration_s(self) -> float:
        """Of all iterations alone: of all kinds, as often as each was seen, or of the spread."""
        seen = sum(kind.seen for kind in self.kinds)
        if not seen:
            return self.iteration_s * (fmean(self.spread) if self.spread else 1.0)
        return sum(kind.seen * kind.iteration_s for kind in self.kinds) / seen

    @property
    def solo_s(self) -> float | None:
        """Of the job's whole run alone; None if it never ran to its end."""
        return None if self.iterations is None else self.iterations * self.mean_iteration_s

    def refining(self, before: Profile | None) -> Profile:
        """What is known after a run that was given `before`, this one being told by it: with what can only be measured
        while no job is beside, and with what was seen of kinds of iterations."""
        if before is None:
            return self
        found = self
        if self.cores_busy is None:
            found = replace(
                self.at_pace(before.iteration_s), cores_busy=before.cores_busy, spread=before.spread
            )
        if self.gil_share is None:
            found = replace(
                found,
                gil_share=before.gil_share,
                sensitivity=before.sensitivity,
                pressure=before.pressure,
            )
        known = before.at_pace(found.iteration_s).kinds
        kinds = [kind.after(known[i]) if i < len(known) else kind for i, kind in enumerate(found.kinds)]
        return replace(found, kinds=tuple(kinds) or known)

    def instead_of(self, before: Profile | None) -> Profile:
        """Measured anew, without `before` being given: with what only a run to the job's end shows."""
        if before is None:
            return self
        kinds = before.at_pace(self.iteration_s).kinds or self.kinds
        return replace(self, iterations=before.iterations, kinds=kinds)

    def at_pace(self, iteration_s: float) -> Profile:
        """As if the profiled iteration took so long, and those of other kinds as much longer or shorter."""
        factor = iteration_s / self.iteration_s if self.iteration_s else 1.0
        kinds = tuple(kind.at_pace(factor) for kind in self.kinds)
        return replace(self, iteration_s=iteration_s, kinds=kinds)

    @staticmethod
    def from_host(command: str, message: dict[str, Any]) -> Profile:
        """From what the host says of a job."""
        fields = {k: v for k, v in message.items() if k not in ("curve", "kinds", "spread", *_GONE)}
        curve = message["curve"]
        kinds = tuple(IterationKind.from_json(kind) for kind in message.get("kinds", ()))
        return Profile(
            command=command,
            held_bytes=tuple(curve["held_bytes"]),
            time_s=tuple(curve["time_s"]),
            spread=tuple(message.get("spread", ())),
            kinds=kinds,
            **fields,
        )

    def to_json(self) -> dict[str, Any]:
        """The file's content."""
        fields = asdict(self)
        curve = {"held_bytes": fields.pop("held_bytes"), "time_s": fields.pop("time_s")}
        return {"format": FORMAT, "version": VERSION, **fields, "curve": curve}

    @staticmethod
    def from_json(content: Any, where: str) -> Profile:
        """Read a file's content.

        :raises UsageError: it is no profile, or of a version that this gpushare does not read.
        """
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise UsageError(f"{where} is not a gpushare profile")
        if content.get("version") not in READ:
            reads = f"{', '.join(map(str, READ[:-1]))} and {READ[-1]}"
            raise UsageError(
                f"{where} has profile version {content.get('version')}, this gpushare reads {reads}"
            )
        body = {k: v for k, v in content.items() if k not in ("format", "version", "command")}
        if wrong := _wrong_names(set(body)):
            raise UsageError(f"{where} is damaged: {wrong}")
        try:
            found = Profile.from_host(content["command"], body)
            wrong = found.what_is_wrong()
        except KeyError as error:
            raise UsageError(f"{where} is damaged: it lacks {error}") from None
        except (TypeError, AttributeError) as error:
            raise UsageError(f"{where} is damaged: {error}") from None
        if wrong:
            raise UsageError(f"{where} is damaged: {wrong}")
        return found

    def what_is_wrong(self) -> str | None:
        """What no measured iteration can have; None if there is nothing of that sort."""
        sizes = (*self.held_bytes, self.residue_bytes, self.peak_held_bytes, self.page_bytes)
        if not all(isinstance(n, int) and n >= 0 for n in sizes) or self.page_bytes == 0:
            return "sizes must be numbers of bytes"
        if self.page_bytes < _LEAST_PAGE_BYTES or self.page_bytes & (self.page_bytes - 1):
            return f"page_bytes must be a power of two from {_LEAST_PAGE_BYTES} up, but is {self.page_bytes}"
        if not isinstance(self.key, str | None):
            return "its key must be a text"
        if not all(is_time(t) for t in (*self.time_s, self.iteration_s)):
            return "times must be numbers of seconds"
        if self.iterations is not None and (not isinstance(self.iterations, int) or self.iterations < 1):
            return "iterations must be a number"
        shares = (self.cores_busy, self.gil_share, self.sensitivity, self.pressure)
        if not all(isinstance(share, int | float) and share >= 0 for share in shares if share is not None):
            return "shares must be numbers"
        if not all(isinstance(factor, int | float) and factor > 0 for factor in self.spread):
            return "its spread must be of numbers above 0"
        if not self.held_bytes or len(self.held_bytes) != len(self.time_s):
            return f"its curve has {len(self.held_bytes)} sizes and {len(self.time_s)} times"
        if any(later < earlier for earlier, later in pairwise(self.time_s)):
            return "the times of its curve go back"
        if len(self.kinds) > MOST_KINDS:
            return f"it has more than {MOST_KINDS} kinds of iterations"
        if any(len(kind.followed_by) > len(self.kinds) for kind in self.kinds):
            return "a kind is followed by one that is not there"
        return next((wrong for kind in self.kinds if (wrong := kind.what_is_wrong())), None)

    def save(self, path: Path) -> None:
        """Write the file whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(self.to_json()), encoding="utf-8")
        part.replace(path)

    @staticmethod
    def load(path: Path) -> Profile:
        """Read a file.

        :raises UsageError: see `from_json`; or it can't be read, or is no JSON.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageError(f"{path} can't be read: {error.strerror}") from None
        except ValueError as error:  # no JSON, or no text at all
            raise UsageError(f"{path} is damaged: {error}") from None
        return Profile.from_json(content, str(path))


def _wrong_names(names: set[str]) -> str | None:
    """What a file lacks of a profile, or has beside one, by the names of its fields."""
    own = {
        field.name: field
        for field in fields(Profile)
        if field.name not in ("held_bytes", "time_s", "command")
    }
    needed = {name for name, field in own.items() if field.default is MISSING} | {"curve"}
    for what, wrong in (("lacks", needed - names), ("also has", names - own.keys() - {"curve", *_GONE})):
        if wrong:
            return f"it {what} {', '.join(map(repr, sorted(wrong)))}"
    return None
