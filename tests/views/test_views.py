import io
import os
import struct
from dataclasses import replace

import pytest
from filled_memory import MIB, empty, fill, put, text_of
from rich.console import Console

from gpushare.launcher.results import JobResult
from gpushare.profiles import Profile
from gpushare.telemetry import layout
from gpushare.telemetry.decisions import Wait
from gpushare.telemetry.reader import Telemetry
from gpushare.views import console as consoles
from gpushare.views import figures
from gpushare.views.explain import render_waits
from gpushare.views.figures import build_summary
from gpushare.views.live import LiveScreen
from gpushare.views.profile import curve_picture, render_profile, rows
from gpushare.views.summary import render_summary


@pytest.fixture
def memory() -> int:
    return empty()


def test_events_are_read_in_order_and_torn_ones_skipped(memory: int) -> None:
    ring = layout.HEADER_BYTES + layout.ACCOUNTS * layout.SLOT_BYTES + layout.RING_ENTRIES * 32
    for i in range(3):
        sequence = 0 if i == 1 else i + 1
        os.pwrite(memory, struct.pack("<4Q", sequence, 100 + i, 1, i), ring + 32 * i)
    slot = layout.HEADER_BYTES + layout.SLOT_BYTES
    put(memory, slot, layout.SLOT, ring_head=3)
    events, missed = Telemetry(memory).events(1)
    assert [(e.sequence, e.time_ns, e.kind, e.value) for e in events] == [
        (1, 100, "open", 0),
        (3, 102, "open", 2),
    ]
    assert missed == 1


def test_live_view_fits_80_columns(memory: int) -> None:
    fill(memory)
    screen = LiveScreen(["train", "other"], 400 * MIB, Console(width=80))
    assert "starting" in text_of(screen.render())
    screen._telemetry = Telemetry(memory)
    screen.job_started(0, 1)
    screen._last_line["train"] = "step 40 loss 0.1" + "x" * 200
    text = text_of(screen.render())
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "300.0 MiB of 400.0 MiB" in text
    assert "iterating" in text and "step 40" in text and "150.0 MiB" in text


def test_what_moves_the_cursor_stays_out_of_the_live_view() -> None:
    out = io.StringIO()
    screen = LiveScreen(["train"], 400 * MIB, Console(width=80, file=out, force_terminal=False))
    lines = {
        "\x1b[32m50%\x1b[0m|\x1b[1;38;5;9mloss\x1b[0m\x1b[K 0.5": "50%|loss 0.5",
        "\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b(B\x1b7": "alink",
        "cut \x1b": "cut ",
        "plain [32m": "plain [32m",
        "": "",
    }
    for line in ("\x1b[A\x1b[A\x1b[2K", *lines):
        screen.job_line("train", line)
    assert out.getvalue().splitlines() == [f"train | {text}" for text in lines.values()]
    screen.job_line("train", "last")
    screen.job_line("train", "\x1b[A")
    assert screen._last_line == {"train": "last"}


def test_what_follows_the_last_picture_begins_a_line(memory: int) -> None:
    fill(memory)
    out = io.StringIO()
    screen = LiveScreen(["train", "other"], 400 * MIB, Console(width=80, file=out, force_terminal=False))
    screen.start(Telemetry(memory))
    screen.stop()
    assert "other" in out.getvalue() and out.getvalue().endswith("\n")


def test_a_job_that_is_queued_is_told_as_that_and_its_end(memory: int) -> None:
    for account, state in ((1, layout.STATES.index("iterating")), (2, layout.STATES.index("queued"))):
        put(memory, layout.HEADER_BYTES + account * layout.SLOT_BYTES, layout.SLOT, state=state)
    screen = LiveScreen(["train", "other", "third"], 400 * MIB, Console(width=80))
    screen._telemetry = Telemetry(memory)
    screen.job_started(0, 1)

    def phases() -> list[list[str]]:
        return [line.split()[:3] for line in text_of(screen.render()).splitlines()[2:]]

    assert phases() == [["train", "iterating", "0"], ["other", "queued", "-"], ["third", "starting", "-"]]
    screen.job_ended(1, "interrupted")
    assert phases()[1] == ["other", "interrupted", "-"]


def test_names_of_jobs_are_no_markup(memory: int) -> None:
    fill(memory)
    names = ["[b]a", "t:smile:[lr=1]"]
    results = [JobResult(name, name, "ok", 0, None, i + 1) for i, name in enumerate(names)]
    console = consoles.Console()
    screen = LiveScreen(names, 400 * MIB, console)
    screen._telemetry = Telemetry(memory)
    wait = Wait(0, 10**9, None, 0, 1, account=1, for_account=2, reason=1, refused=False)
    summary = build_summary(Telemetry(memory), results, policy="zico", budget_bytes=MIB, duration_s=6.0)
    shown = {
        "live": lambda: console.print(screen.render()),
        "summary": lambda: render_summary(summary, console),
        "waits": lambda: render_waits([wait], names, console),
    }
    for what, show in shown.items():
        with console.capture() as captured:
            show()
        assert all(name in captured.get() for name in names), what


def test_each_field_of_the_summary_is_explained(memory: int) -> None:
    fill(memory)
    modes = {"zico": {"seconds": 2.0, "pace": 1.45, "yield": 1.5, "efficiency": 1.5}}
    results = [JobResult("a", "a.py", "ok", 0, None, 1)]
    summary = build_summary(
        Telemetry(memory), results, policy="zico", budget_bytes=MIB, duration_s=6.0, yields={"modes": modes}
    )
    mode, job, wakes = summary["modes"]["zico"], summary["jobs"][0], summary["wakes"]
    later = (
        "budget_at_end_bytes",
        "scheduler_cpu_s",
        "pair_factor",
        "factor",
        "runs",
        "this_run",
        "restarts",
    )
    tables = (summary, mode, wakes, wakes["gil"], job, job["waited_s"], job["memory"], dict.fromkeys(later))
    text = figures.__doc__ or ""
    assert [name for table in tables for name in table if f"`{name}`" not in text] == []


@pytest.mark.parametrize(("width", "shifts"), [(80, True), (60, False)])
def test_a_narrow_terminal_has_no_shifts_rather_than_broken_columns(
    memory: int, width: int, shifts: bool
) -> None:
    fill(memory)
    results = [JobResult("train", "train.py", "ok", 0, None, 1)]
    summary = build_summary(Telemetry(memory), results, policy="zico", budget_bytes=MIB, duration_s=6.0)
    console = Console(width=width, record=True, file=io.StringIO())
    render_summary(summary, console)
    heading, row = console.export_text().splitlines()[:2]
    assert ("forecast" in heading) is shifts and "peak here" in heading
    assert row.split()[:3] == ["train", "ok", "40"]


def test_a_gpu_is_shown(memory: int) -> None:
    fill(memory)
    screen = LiveScreen(["train"], 400 * MIB, Console(width=80), "cuda:1")
    screen._telemetry = Telemetry(memory)
    lines = text_of(screen.render()).splitlines()
    assert "300.0 MiB of 400.0 MiB, cuda:1" in lines[0] and len(lines[0]) <= 80
    summary = build_summary(
        Telemetry(memory), [], policy="zico", budget_bytes=MIB, duration_s=6.0, device="cuda:1 (a GPU)"
    )
    assert summary["device"] == "cuda:1 (a GPU)"
    console = Console(width=100, record=True, file=io.StringIO())
    render_summary(summary, console)
    assert "all took 6.0 s (zico, cuda:1 (a GPU))" in console.export_text()


@pytest.mark.parametrize(
    ("device", "status", "told"), [("cuda:0", "ok", True), ("cuda:0", "failed", False), ("cpu", "ok", False)]
)
def test_who_had_nothing_on_the_gpu_is_told(memory: int, device: str, status: str, told: bool) -> None:
    fill(memory)
    results = [JobResult(name, name, status, 0, None, account) for name, account in (("a", 1), ("b", 2))]
    summary = build_summary(
        Telemetry(memory), results, policy="zico", budget_bytes=MIB, duration_s=6.0, device=device
    )
    summary["jobs"][0]["held_peak_bytes"], summary["jobs"][1]["held_peak_bytes"] = 0, MIB
    console = Console(width=100, record=True, file=io.StringIO())
    render_summary(summary, console)
    assert ("nothing was held on cuda:0 by a: what a job has on the CPU" in console.export_text()) is told


def test_summary_has_its_figures(memory: int) -> None:
    fill(memory)
    results = [JobResult("a", "a.py", "ok", 0, None, 1), JobResult("b", "b.py", "failed", 3, "why", 2)]
    summary = build_summary(Telemetry(memory), results, policy="zico", budget_bytes=400 * MIB, duration_s=6.0)
    assert summary["pool_peak_bytes"] == 310 * MIB
    assert summary["solo_peaks_sum_bytes"] == 400 * MIB
    assert summary["overlap_s"] == 2.0
    assert summary["serial_estimate_s"] == pytest.approx(5 - 1 - 0.4 + 5 - 1 - 0.38 + 2 * 1)
    console = Console(width=100, record=True, file=io.StringIO())
    render_summary(summary, console)
    text = console.export_text()
    assert "failed (3)" in text and "b: why" in text and "400.0 MiB" in text


@pytest.mark.parametrize(
    ("accounts", "told"),
    [
        ((1, 2), "peaks alone sum to 400.0 MiB; budget "),
        ((1, None), "peaks alone sum to 200.0 MiB without b; budget "),
        ((None, None), "budget "),
    ],
)
def test_peaks_of_who_never_iterated_are_not_in_their_sum(
    memory: int, accounts: tuple[int | None, int | None], told: str
) -> None:
    fill(memory)
    results = [JobResult(name, "x", account=a) for name, a in zip("ab", accounts, strict=True)]
    summary = build_summary(Telemetry(memory), results, policy="zico", budget_bytes=400 * MIB, duration_s=6.0)
    console = Console(width=100, record=True, file=io.StringIO())
    render_summary(summary, console)
    assert f"\n{told}400.0 MiB; the pool's peak was" in console.export_text()


def test_a_job_alone_takes_what_its_iterations_were_found_to_take(memory: int) -> None:
    """The profile of the first one was disturbed by others that were setting up; the second one's was not."""
    fill(memory)
    results = [JobResult("a", "a.py", account=1), JobResult("b", "b.py", account=2), JobResult("c", "c.py")]
    found = {"solo_s": {"1": 0.08, "2": 0.11}}
    summary = build_summary(
        Telemetry(memory), results, policy="zico", budget_bytes=MIB, duration_s=6.0, yields=found
    )
    assert [job["alone_s"] for job in summary["jobs"]] == [
        pytest.approx(5 - 1 - 1.2),
        pytest.approx(5 - 1 - 0.38),
        None,
    ]


def test_what_a_set_up_waits_for_the_interpreter_it_would_not_alone(memory: int) -> None:
    fill(memory)
    results = [JobResult("a", "a.py", account=1), JobResult("b", "b.py", account=2)]
    before = build_summary(Telemetry(memory), results, policy="zico", budget_bytes=MIB, duration_s=6.0)
    for account, waited_ns, before_ns in ((1, 900_000_000, 600_000_000), (2, 400_000_000, 0)):
        slot = layout.HEADER_BYTES + account * layout.SLOT_BYTES
        put(memory, slot, layout.SLOT, gil_wait_ns=waited_ns, gil_wait_before_ns=before_ns)
    summary = build_summary(Telemetry(memory), results, policy="zico", budget_bytes=MIB, duration_s=6.0)
    taken = [
        was["alone_s"] - now["alone_s"] for was, now in zip(before["jobs"], summary["jobs"], strict=True)
    ]
    assert taken == [pytest.approx(0.6), 0]
    assert [job["gil_wait_s"] for job in summary["jobs"]] == [0.9, 0.4]
    console = Console(width=100, record=True, file=io.StringIO())
    render_summary(summary, console)
    told = [line for line in console.export_text().splitlines() if "Python's lock" in line]
    assert told == [
        "a waited 900.0 ms for Python's lock (GIL), which the jobs of a run share"
    ]  # b's is little


def test_what_a_set_up_waits_for_a_processor_it_would_not_alone(memory: int) -> None:
    fill(memory)
    results = [JobResult("a", "a.py", account=1), JobResult("b", "b.py", account=2)]
    before = build_summary(Telemetry(memory), results, policy="zico", budget_bytes=MIB, duration_s=6.0)
    put(memory, layout.HEADER_BYTES + layout.SLOT_BYTES, layout.SLOT, cpu_wait_before_ns=700_000_000)
    summary = build_summary(Telemetry(memory), results, policy="zico", budget_bytes=MIB, duration_s=6.0)
    taken = [
        was["alone_s"] - now["alone_s"] for was, now in zip(before["jobs"], summary["jobs"], strict=True)
    ]
    assert taken == [pytest.approx(0.7), 0]


def test_a_shift_has_a_forecast_only_where_one_was_planned(memory: int) -> None:
    fill(memory)
    for account, planned_ns in ((1, 0), (2, 200_000_000)):
        slot = layout.HEADER_BYTES + account * layout.SLOT_BYTES
        put(memory, slot, layout.SLOT, shift_sum_ns=10**9, shift_count=2, predicted_shift_ns=planned_ns)
    results = [JobResult("a", "a.py", "ok", 0, None, 1), JobResult("b", "b.py", "ok", 0, None, 2)]
    jobs = build_summary(Telemetry(memory), results, policy="zico", budget_bytes=MIB, duration_s=6.0)["jobs"]
    assert [job["time_shift_s"] for job in jobs] == [0.5, 0.5]
    assert [job["predicted_time_shift_s"] for job in jobs] == [None, 0.2]
    assert [job["shift_error_s"] for job in jobs] == [None, pytest.approx(0.3)]


def test_the_summary_says_how_wrong_forecasts_of_waits_were(memory: int) -> None:
    fill(memory)
    slots = [layout.HEADER_BYTES + account * layout.SLOT_BYTES for account in (1, 2)]
    put(memory, slots[0], layout.SLOT, waited_shift_ns=10**9, longest_wait_ns=4 * 10**8)
    put(memory, slots[0], layout.SLOT, forecast_waits=8, forecast_error_ns=10**8)
    put(memory, slots[1], layout.SLOT, waited_claims_ns=10**9, longest_wait_ns=6 * 10**8)
    results = [JobResult("a", "a.py", "ok", 0, None, 1), JobResult("b", "b.py", "ok", 0, None, 2)]
    summary = build_summary(Telemetry(memory), results, policy="zico", budget_bytes=MIB, duration_s=6.0)
    assert [job["waits_forecast"] for job in summary["jobs"]] == [8, 0]
    assert [job["forecast_error_s"] for job in summary["jobs"]] == [0.0125, None]
    console = Console(width=200, record=True, file=io.StringIO())
    render_summary(summary, console)
    text = console.export_text()
    first, second = (line for line in text.splitlines() if " waited " in line)
    assert first.endswith("8 waits were forecast, wrong by 12.5 ms on the mean") and "forecast" not in second
    assert "the longest wait was 600.0 ms (b)" in text


def test_the_summary_says_which_mode_was_in_force(memory: int) -> None:
    fill(memory)
    modes = {
        "zico": {"seconds": 2.0, "pace": 1.45, "yield": 1.5, "efficiency": 1.5},
        "waterwave": {"seconds": 1.0, "pace": 1.35, "yield": 1.4, "efficiency": 1.25},
        "temporal": {"seconds": 0.5, "pace": 0.2, "yield": None, "efficiency": None},
    }
    yields = {
        "modes": modes,
        "turns_s": 0.5,
        "yield_side_by_side": 1.5,
        "yield_in_turns": None,
        "trials_lost_s": 0.1,
    }
    results = [JobResult("a", "a.py", "ok", 0, None, 1), JobResult("b", "b.py", "ok", 0, None, 2)]

    def told(of: dict[str, object] | None) -> tuple[dict[str, object], str]:
        summary = build_summary(
            Telemetry(memory), results, policy="auto", budget_bytes=400 * MIB, duration_s=6.0, yields=of
        )
        console = Console(width=300, record=True, file=io.StringIO())
        render_summary(summary, console)
        return summary, console.export_text()

    summary, text = told(yields)
    assert {name: summary[name] for name in yields} == yields
    assert (
        "; by zico for 2.0 s at 1.45 times the pace of one after the other, by waterwave for 1.0 s at 1.35 times the "
        "pace of one after the other (efficiency 1.25 when last measured), in turns for 500.0 ms\n"
    ) in text
    summary, text = told({**yields, "modes": {"zico": modes["zico"]}})
    assert "by zico" not in text  # there was no other one
    summary, text = told(None)
    assert summary["modes"] is None and "zico" not in text


def test_a_job_that_never_ran_is_in_the_summary(memory: int) -> None:
    summary = build_summary(
        Telemetry(memory), [JobResult("a", "a.py")], policy="zico", budget_bytes=MIB, duration_s=0.1
    )
    (job,) = summary["jobs"]
    assert job["status"] == "waiting" and job["duration_s"] is None and job["iterations"] == 0


def test_the_curve_is_highest_at_its_peak() -> None:
    held = tuple(MIB * n for n in (1, 2, 4, 8, 4, 2, 1))
    profile = Profile(
        "a", "2", "cpu", MIB, 0, 0, 0, 8 * MIB, 8 * MIB, 0, 0.7, held, tuple(i / 10 for i in range(7))
    )
    picture = curve_picture(profile, 35, 4)
    assert len({len(line) for line in picture}) == 1
    top = picture[0].split("|")[1]
    assert top[:15].strip() == "" and "█" in top[15:21] and top[21:].strip() == ""


def test_a_profile_is_shown_on_a_terminal_of_any_width() -> None:
    profile = Profile("a", "2", "cpu", MIB, 0, 0, 0, MIB, MIB, 0, 0.1, (MIB,), (0.0,))
    for width in (1, 13, 14, 15, 80):
        console = Console(width=width, record=True, file=io.StringIO())
        render_profile(profile, console)
        assert "█" in console.export_text()


def test_a_profile_says_how_much_iterations_vary() -> None:
    profile = Profile("a", "2", "cpu", MIB, 0, 0, 0, MIB, MIB, 0, 0.1, (MIB,), (0.0,))
    assert "iterations vary" not in dict(rows(profile))
    vary = dict(rows(replace(profile, spread=(0.95, 1.0, 1.2))))["iterations vary"]
    assert vary == "95.0 to 120.0 ms, 105.0 ms on the mean"
