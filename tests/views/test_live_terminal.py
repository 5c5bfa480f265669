"""The live view on a terminal: what is drawn over, and what is not."""

import io
import threading
import time

import pytest
from filled_memory import MIB, empty, fill, text_of
from rich.cells import cell_len
from rich.console import Console, ConsoleRenderable

from gpushare.telemetry.reader import Telemetry
from gpushare.views.live import LiveScreen
from gpushare.views.names import shortened
from gpushare.views.picture import Picture, wrapped_rows

UP = "\x1b[1A"


@pytest.fixture(autouse=True)
def reflowing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XTERM_VERSION", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.fixture
def memory() -> int:
    return empty()


def terminal(width: int, height: int = 25) -> Console:
    return Console(width=width, height=height, file=io.StringIO(), force_terminal=True, _environ={})


def written(console: Console) -> str:
    out = console.file
    assert isinstance(out, io.StringIO)
    text = out.getvalue()
    out.seek(0)
    out.truncate()
    return text


def test_what_the_shell_wrote_meanwhile_is_not_drawn_over(memory: int) -> None:
    fill(memory)
    console = terminal(80)
    screen = LiveScreen(["train", "other"], 400 * MIB, console)
    screen.start(Telemetry(memory))
    screen.note("before")
    with screen.aside():
        before = written(console)
        assert before.endswith("\n\x1b[?25h")  # the cursor is seen again, on a line of its own
    screen.note("after")
    after = written(console)
    assert "after" in after and UP not in after.partition("after")[0]
    screen.note("more")
    assert UP in written(console).partition("more")[0]
    screen.stop()
    with screen.aside():
        assert screen._live is not None and not screen._live.is_started
    assert not screen._live.is_started


def test_a_stop_in_a_stop_changes_nothing(memory: int) -> None:
    fill(memory)
    screen = LiveScreen(["train"], 400 * MIB, terminal(80))
    with screen.aside():
        pass  # before it is drawn
    screen.start(Telemetry(memory))
    with screen.aside(), screen.aside():
        pass
    screen.stop()


def test_a_line_that_is_being_printed_comes_before_the_last_picture(
    memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(memory)
    console = terminal(80)
    screen = LiveScreen(["train"], 400 * MIB, console)
    found, begun = Picture.process_renderables, threading.Event()

    def slowly(picture: Picture, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        shown = found(picture, renderables)
        if threading.current_thread() is printing:
            begun.set()
            time.sleep(0.3)
        return shown

    monkeypatch.setattr(Picture, "process_renderables", slowly)
    printing = threading.Thread(target=screen.note, args=["a line"])
    screen.start(Telemetry(memory))
    printing.start()
    assert begun.wait(10)
    with screen.aside():
        assert "a line" in written(console)
        printing.join()
        assert written(console) == ""
    screen.stop()


def test_of_a_picture_that_was_wrapped_all_rows_are_drawn_over() -> None:
    console = terminal(120)
    picture = Picture(lambda: f"{'a' * 110}\nb\n{'c' * 61}{' ' * 59}", console)
    picture.start()
    console.print("first")
    written(console)
    console.width = 60
    console.print("second")
    up = written(console).partition("second")[0].count(UP)
    picture.stop()
    assert up == 2 + 1 + 1


@pytest.mark.parametrize(
    ("widths", "width", "more"), [([80, 80], 80, 0), ([81, 80, 0], 80, 1), ([120, 10], 50, 2), ([5], 0, 4)]
)
def test_rows_that_a_narrow_terminal_wraps(widths: list[int], width: int, more: int) -> None:
    assert wrapped_rows(widths, width) == more


@pytest.mark.parametrize("variable", [("TERM", "linux"), ("XTERM_VERSION", "XTerm(1)")])
def test_nothing_more_is_drawn_over_where_rows_are_cut_off(
    variable: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(*variable)
    assert wrapped_rows([120], 50) == 0


@pytest.mark.parametrize("width", [80, 200])
def test_names_that_differ_at_their_ends_stay_apart(memory: int, width: int) -> None:
    fill(memory)
    names = [f"ein_sehr_langer_name_der_nicht_in_die_spalte_passt_{n}" for n in (1, 2)]
    screen = LiveScreen(names, 400 * MIB, Console(width=width, file=io.StringIO()))
    screen._telemetry = Telemetry(memory)
    screen.job_started(0, 1)
    for name in names:
        screen._last_line[name] = "step 1 loss 0.5" + "x" * 300
    lines = text_of(screen.render(), width).splitlines()
    shown = [line.split()[0] for line in lines[2:4]]
    assert [name[-2:] for name in shown] == ["_1", "_2"]
    assert (shown == names) == (width == 200)
    assert "150.0 MiB" in lines[2] and all(cell_len(line) <= width for line in lines)


def test_short_names_leave_their_room_to_the_last_line(memory: int) -> None:
    fill(memory)
    screen = LiveScreen(["a"], 400 * MIB, Console(width=200, file=io.StringIO()))
    screen._telemetry = Telemetry(memory)
    assert text_of(screen.render(), 200).splitlines()[2].startswith("a ")


@pytest.mark.parametrize(
    ("name", "width", "short"),
    [
        ("name", 4, "name"),
        ("name_1", 4, "n…_1"),
        ("name_1", 1, "…"),
        ("name_1", 2, "…1"),
        ("名前の長いもの", 8, "名…もの"),
    ],
)
def test_a_name_is_shortened_in_its_middle(name: str, width: int, short: str) -> None:
    assert shortened(name, width) == short


def test_jobs_for_which_there_are_no_rows_are_counted(memory: int) -> None:
    fill(memory)
    names = [f"job-{n}" for n in range(10)]
    console = terminal(80, height=8)
    screen = LiveScreen(names, 400 * MIB, console)
    screen._telemetry = Telemetry(memory)
    for n in range(8):
        screen.job_started(n, n + 1)
    screen.job_ended(0, "ok")
    lines = text_of(screen.render()).splitlines()
    assert len(lines) == 8 and lines[-1] == "and 5 more, 2 of them running"
    assert [line.split()[0] for line in lines[2:-1]] == names[1:6]  # the one that has ended made room
    screen.start(Telemetry(memory))
    screen.stop()
    assert "job-9" in written(console)  # the last picture has them all
