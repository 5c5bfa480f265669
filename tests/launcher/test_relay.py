import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpushare.errors import UsageError
from gpushare.launcher.logs import Logs
from gpushare.launcher.relay import Relay


class Lines:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []
        self.notes: list[str] = []

    def job_line(self, name: str, text: str) -> None:
        self.lines.append((name, text))

    def note(self, text: str) -> None:
        self.notes.append(text)


def relay(folder: Path, pieces: list[bytes]) -> tuple[Lines, Path]:
    screen, logs = Lines(), Logs(folder, ["job"])
    work = Relay(logs, screen)
    reading, writing = os.pipe()
    work.add(reading, "job", "out")
    work.start()
    for piece in pieces:
        os.write(writing, piece)
    os.close(writing)
    work.finish(timeout_s=10)
    logs.close()
    return screen, folder / "job.out"


@given(pieces=st.lists(st.binary(min_size=1, max_size=50), max_size=8))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_log_has_every_byte_and_the_screen_every_line(pieces: list[bytes], tmp_path: Path) -> None:
    screen, log = relay(tmp_path, pieces)
    written = b"".join(pieces)
    assert log.read_bytes() == written
    lines = written.split(b"\n")
    if not lines[-1]:
        lines.pop()
    assert len(screen.lines) == len(lines)


def test_a_line_in_two_pieces_is_one_and_a_progress_bar_shows_its_last_state(tmp_path: Path) -> None:
    screen, _ = relay(tmp_path, [b"one ", b"line\n", b"\r1/2\r2/2\n", b"no end"])
    assert screen.lines == [("job", "one line"), ("job", "2/2"), ("job", "no end")]


def test_a_log_that_takes_no_more_is_told_once_and_the_screen_goes_on(tmp_path: Path) -> None:
    tmp_path.joinpath("job.out").symlink_to("/dev/full")
    screen, _ = relay(tmp_path, [b"a\n", b"b\n", b"c\n"])
    assert [text for _, text in screen.lines] == ["a", "b", "c"]
    (note,) = screen.notes
    assert "is incomplete from here on: No space left on device" in note


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="can't be written to"):
        Logs(tmp_path / "file" / "logs", ["job"])


def test_a_progress_bar_that_never_ends_its_line_takes_no_memory(tmp_path: Path) -> None:
    screen, logs = Lines(), Logs(tmp_path, ["job"])
    work = Relay(logs, screen)
    for n in range(20_000):
        work._take("job", "err", b"\r%d/20000 %s" % (n, b"#" * 100))
    work._take("job", "err", b"x" * (1 << 20))
    assert sum(map(len, work._partial.values())) <= 1 << 16
    work._take("job", "err", b"\rdone\n")
    assert screen.lines == [("job", "done")]
    logs.close()
    assert (tmp_path / "job.err").stat().st_size > 20_000 * 100 + (1 << 20)
