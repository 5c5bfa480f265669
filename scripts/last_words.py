"""What a run of gpushare that ended wrongly has left in `--log-dir`: its jobs' stderr, and the log of its host.

The launcher's own stderr has neither: a job's traceback goes to its log, and a host that is asked by SIGQUIT writes the
stacks of its threads into its own. The check of a GPU, its tests and its benchmark all tell of it from here.
"""

from pathlib import Path

HOST = "host.log"
STACK = "most recent call first"  # so `faulthandler` begins one
FILE_BYTES = 1 << 14  # of each file, its end


def files(logs: Path) -> list[Path]:
    """The jobs' stderr, then the hosts' logs; those of restarts lie below."""
    return [*sorted(logs.rglob("*.err")), *sorted(logs.rglob(HOST))]


def runs_with_stacks(folder: Path) -> list[Path]:
    """The log folders below one whose hosts have told where their threads are."""
    return [log.parent for log in sorted(folder.rglob(HOST)) if STACK in end_of(log)]


def end_of(file: Path, most: int = FILE_BYTES) -> str:
    """The last bytes of a file as text; nothing if it is not there."""
    if not file.exists():
        return ""
    with file.open("rb") as log:
        log.seek(max(0, file.stat().st_size - most))
        return log.read().decode(errors="replace")


def tail(text: str, lines: int = 3, most: int = 300) -> str:
    """The last lines in one."""
    return " | ".join(line.strip() for line in text.strip().splitlines()[-lines:])[-most:]


def of_run(logs: Path, said: str, lines: int = 3, most: int = 400) -> str:
    """In one line, with an equal share for each who has said something; `said` is gpushare's own stderr."""
    texts = [text for text in (said, *map(end_of, files(logs))) if text.strip()]
    return " | ".join(tail(text, lines, most // len(texts)) for text in texts)


def in_full(logs: Path, said: str) -> str:
    """The end of each below its name, gpushare's own first."""
    texts = {"gpushare": said[-FILE_BYTES:]}
    texts |= {str(file.relative_to(logs)): end_of(file) for file in files(logs)}
    return "\n".join(f"--- {name}\n{text.rstrip()}" for name, text in texts.items() if text.strip())
