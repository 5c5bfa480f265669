"""What the user asked to run, from the command line or a job file."""

from __future__ import annotations

import importlib.util
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gpushare.errors import UsageError

# Who goes first of the jobs that wait (`scheduling/order.py`).
FIFO, FAIR, SRTF, PRIORITY = "fifo", "fair", "srtf", "priority"
ORDERS = (FIFO, FAIR, SRTF, PRIORITY)
MOST_PRIORITY = 10**9  # the shim's ranks have 64 bits
_INTERPRETER = r"python(\d(\.\d+)?)?"
_LAUNCHERS = {"torchrun", "accelerate", "deepspeed", "mpirun", "srun", "nohup", "time", "env"}
PROFILE_FORMAT = "gpushare-profile"
_PROFILE_BEGINS = re.compile(rb'\s*\{\s*"format"\s*:\s*"%s"' % PROFILE_FORMAT.encode())


@dataclass(frozen=True)
class JobSpec:
    """One script with its arguments. `target` is a path or, if kind is "module", a module's name."""

    name: str
    kind: str
    target: str
    args: tuple[str, ...]
    cwd: Path
    command: str
    env: dict[str, str] = field(default_factory=dict)
    priority: int = 0

    @property
    def source(self) -> Path | None:
        """File of the script; None for a module that can't be found without running its package."""
        if self.kind == "script":
            return self.cwd / self.target
        relative = Path(*self.target.split("."))
        for candidate in (relative.with_suffix(".py"), relative / "__main__.py"):
            if (self.cwd / candidate).is_file():
                return self.cwd / candidate
        return None


def is_file(path: Path) -> bool:
    """Whether there is such a file; a command line can be too long for the name of one."""
    try:
        return path.is_file()
    except OSError:
        return False


def is_profile(path: Path) -> bool:
    """Whether it is a file that begins as what `gpushare profile --json` prints, whatever its name is."""
    if not is_file(path):  # of a pipe nothing may be read here
        return False
    try:
        with path.open("rb") as file:
            return _PROFILE_BEGINS.match(file.read(200)) is not None
    except OSError:
        return False


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UsageError(
            "the working directory has been removed, and torch's libraries do not load in such a one: go to another one"
        ) from None


def parse_job(text: str, cwd: Path | None = None) -> JobSpec:
    """Read a JOB: a script's path or a command line such as "train.py --lr 0.1" or "-m package.train".

    :raises UsageError: it is empty or its quotes don't match.
    """
    here = _here()  # the host begins there, wherever its jobs do
    cwd = cwd or here
    try:
        words = [text] if is_file(cwd / text) else shlex.split(text)
        command = shlex.join(words) if len(words) == 1 else text  # to be read without the file, too
    except ValueError as error:
        raise UsageError(f"the job {text!r} can't be read: {error}") from None
    if not words:
        raise UsageError("a job must be a script or a command line, but got an empty one")
    if words[0] == "-m":
        if len(words) < 2:
            raise UsageError(f"a module's name must follow -m, but got {text!r}")
        module = words[1]
        return JobSpec(module.rsplit(".", 1)[-1], "module", module, tuple(words[2:]), cwd, command)
    if words[0].startswith("-"):
        raise UsageError(
            f"no such option: {words[0]} (a job is a script, or begins with '-m '; its own options stand with it in "
            "quotes: 'train.py --lr 0.1')"
        )
    return JobSpec(Path(words[0]).stem, "script", words[0], tuple(words[1:]), cwd, command)


def load_job_file(path: Path) -> list[JobSpec]:
    """Read `[[job]]` tables: `command`, and optionally `name`, `cwd`, `env`, `priority`.

    :raises UsageError: with the file and what is wrong.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # no TOML, no text, or a number of more digits than Python takes
        raise UsageError(f"the job file {path} can't be read: {error}") from None
    tables = content.pop("job", [])
    if content:
        raise UsageError(
            f"the job file {path} has an unknown key {next(iter(content))!r}: only [[job]] tables may stand in it; "
            "what belongs to a job goes below its [[job]], and options such as --budget on the command line"
        )
    if not isinstance(tables, list) or not tables:
        raise UsageError(f"the job file {path} has no [[job]] table")
    specs = [_from_table(table, path, i + 1) for i, table in enumerate(tables)]
    named = Counter(t["name"] for t in tables if "name" in t)
    for name, count in named.items():
        if count > 1:
            raise UsageError(f"the job file {path} has {count} jobs named {name!r}")
    return specs


_LONGEST_NAME = 200
_TYPES: dict[str, type] = {"command": str, "name": str, "cwd": str, "env": dict, "priority": int}
_TYPE_WORDS = {str: "a text", dict: "a table", int: "a whole number"}


def _from_table(table: Any, path: Path, number: int) -> JobSpec:
    where = f"{path}: job {number}"
    if not isinstance(table, dict) or "command" not in table:
        raise UsageError(f"{where} has no command")
    for key, value in table.items():
        if key not in _TYPES:
            raise UsageError(f"{where} has an unknown key {key!r}; known are {', '.join(_TYPES)}")
        if not isinstance(value, _TYPES[key]) or isinstance(value, bool):
            raise UsageError(f"{where}: {key} must be {_TYPE_WORDS[_TYPES[key]]}, but got {value!r}")
    if (name := table.get("name")) is not None and not _can_name_files(name):
        raise UsageError(
            f"{where}: a name must do for files: 1 to {_LONGEST_NAME} bytes without '/', not {name!r}"
        )
    try:
        cwd = (path.parent / table.get("cwd", ".")).resolve()
    except ValueError as error:
        raise UsageError(f"{where}: cwd can't be read: {error}") from None
    if not cwd.is_dir():
        raise UsageError(f"{where}: the directory {cwd} does not exist")
    try:
        spec = parse_job(table["command"], cwd)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    env = {str(k): str(v) for k, v in table.get("env", {}).items()}
    if wrong := [name for name in env if not name or "=" in name or "\0" in name + env[name]]:
        raise UsageError(
            f"{where}: env can't have {wrong[0]!r}: a name may not be empty or hold '=', and neither it nor its "
            "value may hold a null byte"
        )
    priority = _in_range(table.get("priority", 0), f"{where}: priority")
    return replace(spec, name=table.get("name", spec.name), env=env, priority=priority)


def _can_name_files(name: str) -> bool:
    taken = name in (".", "..") or any(not c.isprintable() or c == "/" for c in name)
    return not taken and 1 <= len(name.encode(errors="replace")) <= _LONGEST_NAME


def with_unique_names(specs: Sequence[JobSpec]) -> list[JobSpec]:
    """The same jobs; repeats of a name get -2, -3."""
    taken: set[str] = set()
    result = []
    for spec in specs:
        name, n = spec.name, 1
        while name in taken:
            n += 1
            name = f"{spec.name}-{n}"
        taken.add(name)
        result.append(replace(spec, name=name))
    return result


def with_priorities(specs: Sequence[JobSpec], texts: Sequence[str]) -> list[JobSpec]:
    """The same jobs with the priorities of NAME=N.

    :raises UsageError: it is not of that form, there is no such job, or it has two.
    """
    given: dict[str, int] = {}
    names = [spec.name for spec in specs]
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            priority = int(number)
        except ValueError:
            raise UsageError(f"--priority must be NAME=N with a whole number N, but got {text!r}") from None
        if name not in names:
            raise UsageError(f"--priority {text}: there is no job {name!r}; the jobs are {', '.join(names)}")
        if name in given:
            raise UsageError(
                f"--priority must be given once for a job, but {name} got {given[name]} and {priority}"
            )
        given[name] = _in_range(priority, "--priority")
    return [replace(spec, priority=given.get(spec.name, spec.priority)) for spec in specs]


def _in_range(priority: int, where: str) -> int:
    if abs(priority) > MOST_PRIORITY:
        raise UsageError(f"{where} must be from {-MOST_PRIORITY} to {MOST_PRIORITY}, but got {priority}")
    return priority


def order_for(order: str | None, specs: Sequence[JobSpec]) -> str:
    """Who goes first of these jobs: as was asked for, else by priority if one has any.

    :raises UsageError: they have priorities, and another order was asked for.
    """
    prioritised = any(spec.priority for spec in specs)
    if prioritised and order not in (None, PRIORITY):
        raise UsageError(
            f"jobs have priorities, but --order is {order}; leave it out, or say --order priority"
        )
    return order or (PRIORITY if prioritised else FIFO)


def _instead(spec: JobSpec, source: Path) -> str:
    """What to say in the place of what starts a script by a shell; nothing where it is none."""
    if spec.args and re.fullmatch(_INTERPRETER, source.name):
        return f"; a job is the script, without {spec.target}: '{shlex.join(spec.args)}'"
    if spec.args and re.fullmatch(r"[A-Za-z_]\w*=.*", spec.target):
        return "; variables of a job are set in a job file, in the table `env`, or for all jobs before gpushare run"
    if spec.args and source.name in _LAUNCHERS:
        return (
            f"; a job is a script of python or '-m module', which runs as one process, without {spec.target}"
        )
    return ""


def check(spec: JobSpec) -> None:
    """Find what would keep the job from starting.

    :raises UsageError: missing file, a directory, a syntax error, a module that isn't there.
    """
    source = spec.source
    if spec.kind == "module" and source is None:
        try:
            found = importlib.util.find_spec(spec.target.split(".")[0])
        except (ImportError, ValueError):
            found = None
        if found is None:
            raise UsageError(f"there is no module {spec.target} in {spec.cwd} or among the installed ones")
        return
    assert source is not None
    if source.suffix == ".json" or is_profile(source):
        raise UsageError(
            f"{spec.target} is no script; a profile is for the command line of `gpushare plan`, in the place of a job: "
            "a job file and the other commands take scripts only"
        )
    if source.is_dir():
        raise UsageError(f"{spec.target} is a directory; a job is a script or '-m module'")
    if source.exists() and not source.is_file():
        raise UsageError(f"{spec.target} is no regular file, and a script is read from one more than once")
    hint = _instead(spec, source)
    if not source.is_file():
        raise UsageError(f"there is no script {spec.target} in {spec.cwd}{hint}")
    if hint and re.fullmatch(_INTERPRETER, source.name):
        raise UsageError(f"{spec.target} is no script{hint}")
    try:
        compile(source.read_bytes(), str(source), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        _refuse_archive(spec, source)
        if not isinstance(error, SyntaxError):
            raise UsageError(f"{source} can't be read: {error}") from None
        where = f"{source}, line {error.lineno}" if error.lineno else str(source)
        raise UsageError(f"syntax error in {where}: {error.msg}") from None
    except OSError as error:
        raise UsageError(f"{source} can't be read: {error}") from None


def _refuse_archive(spec: JobSpec, source: Path) -> None:
    import zipfile  # only here: all commands load this module, and begin sooner without it

    if zipfile.is_zipfile(source):
        raise UsageError(
            f"{spec.target} is a zip archive; a job is a script or '-m module': unpack it, and name its __main__.py"
        )
