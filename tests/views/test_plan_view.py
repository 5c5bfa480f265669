"""A plan as text."""

import io

import pytest
from rich.console import Console

from gpushare.views.plan import render_plan
from gpushare.views.pool import held_over_time, pool_picture

MIB = 1 << 20


def job(name: str, **changes: object) -> dict[str, object]:
    fields = {
        "status": "ok",
        "message": None,
        "queued_s": 0.0,
        "door_wait_s": 0.5,
        "memory_wait_s": 0.25,
        "longest_wait_s": 0.3,
        "slowdown": 1.6,
    }
    return {"name": name, **fields, "time_shift_s": 0.4, **changes}


def policy(*jobs: dict[str, object], **changes: object) -> dict[str, object]:
    fields = {"duration_s": 8.0, "over_serial": 0.8, "stp": 1.25, "antt": 1.6, "pool_peak_bytes": 90 * MIB}
    found = {"nothing_waits_from_bytes": 160 * MIB, "all_run_from_bytes": 90 * MIB, "all_ok": True}
    timeline = [[0.0, 0, 50 * MIB], [0.5, 1, 40 * MIB], [1.0, 0, 0], [2.0, 1, 0]]
    return {"jobs": list(jobs), "timeline": timeline, **fields, **found, **changes}


def plan(**policies: dict[str, object]) -> dict[str, object]:
    shape = {
        "peak_bytes": 80 * MIB,
        "residue_bytes": 8 * MIB,
        "iteration_s": 1.0,
        "iterations": 5,
        "threads": 1.0,
        "arrival_s": 0.0,
        "priority": 0,
    }
    return {
        "budget_bytes": 100 * MIB,
        "solo_peaks_sum_bytes": 160 * MIB,
        "serial_s": 10.0,
        "order": "fifo",
        "split_bytes": None,
        "jobs": [{"name": name, **shape} for name in ("first", "second")],
        "policies": policies,
        "pairs": [],
        "sweep": None,
    }


def text_of(report: dict[str, object], picture_of: str | None = None, width: int = 110) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    render_plan(report, console, picture_of=picture_of)
    return console.export_text()


def test_the_table_has_a_row_for_each_policy_and_what_it_needs() -> None:
    refused = job("second", status="refused", message="gpushare: out of memory: asked for 9 MiB")
    text = text_of(
        plan(
            zico=policy(job("first"), job("second")),
            unmanaged=policy(
                job("first"), refused, all_ok=False, over_serial=None, nothing_waits_from_bytes=None
            ),
        )
    )
    (zico,) = (line for line in text.splitlines() if line.startswith("zico "))
    figures = " ".join(zico.split())
    assert figures == "zico all 2 8.0 s 0.80 1.25 1.60 1.5 s 300.0 ms 400.0 ms 90.0 MiB 90.0 MiB 160.0 MiB"
    (unmanaged,) = (line for line in text.splitlines() if line.startswith("unmanaged "))
    assert unmanaged.split()[:5] == ["unmanaged", "1", "of", "2", "-"]
    assert unmanaged.split()[-3:] == ["90.0", "MiB", "never"]
    assert "unmanaged: second: out of memory: asked for 9 MiB" in text
    assert "peaks sum to 160.0 MiB; budget 100.0 MiB; one after the other 10.0 s" in text


def test_of_many_messages_the_first_are_shown() -> None:
    failed = [job(f"job {i}", status="out of memory", message=f"gpushare: why {i}") for i in range(6)]
    text = text_of(plan(unmanaged=policy(*failed, all_ok=False)))
    assert "unmanaged: job 2: why 2" in text and "why 3" not in text
    assert "unmanaged: and 3 more" in text
    drawn = text_of(plan(unmanaged=policy(*failed, all_ok=False)), "unmanaged")
    assert all(f"unmanaged: job {i}: why {i}\n" in drawn for i in range(6)) and "more" not in drawn


def test_what_is_so_under_several_policies_is_told_once() -> None:
    failed = job("second", status="refused", message="gpushare: out of memory: why")
    other = job("second", status="refused", message="gpushare: out of memory: for another reason")
    found = {name: policy(job("first"), failed, all_ok=False) for name in ("zico", "temporal")}
    lines = text_of(plan(**found, unmanaged=policy(job("first"), other, all_ok=False)), "zico").splitlines()
    assert [line for line in lines if ": out of memory" in line] == [
        "zico, temporal: second: out of memory: why",
        "unmanaged: second: out of memory: for another reason",
    ]


@pytest.mark.parametrize("width", [80, 110])
def test_of_the_drawn_policy_each_job_is_told_and_nothing_is_cut_off(width: int) -> None:
    long = "a-job-whose-name-is-longer-than-there-is-room-for-in-a-terminal-of-80-columns"
    twenty = [f"{long}-{n}" if n == 7 else f"job-{n}" for n in range(20)]
    late = {"time_shift_s": 123.4, "door_wait_s": 123.4, "memory_wait_s": 123.4, "slowdown": 12.34}
    outcomes = [job(name, **late) for name in twenty]
    outcomes[3] = job("job-3", status="out of memory", slowdown=None, time_shift_s=None)
    report = plan(**{name: policy(*outcomes, all_ok=False) for name in ("zico", "waterwave")})
    report["jobs"] = [{**report["jobs"][0], "name": name} for name in twenty]
    text = text_of(report, "zico", width)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width and "…" not in text.replace("a-j…lumns-7", "")  # beside the picture
    told = lines[lines.index("the jobs under zico:") + 1 :]
    assert told[0].split() == ["waits", "waits", "for", "longest"]
    assert told[1].split() == ["job", "fits", "shift", "at", "doors", "memory", "wait", "slowdown"]
    (second,) = (line.split() for line in told if line.startswith("job-2 "))
    assert second == ["job-2", "yes", "123.4", "s", "123.4", "s", "123.4", "s", "300.0", "ms", "12.34"]
    (third,) = (line.split() for line in told if line.startswith("job-3 "))
    assert third == [
        "job-3",
        "no:",
        "out",
        "of",
        "memory",
        "-",
        "500.0",
        "ms",
        "250.0",
        "ms",
        "300.0",
        "ms",
        "-",
    ]
    assert long in "".join(line.split(" ")[0] for line in told)


@pytest.mark.parametrize("width", [80, 110])
def test_who_is_queued_is_told_with_the_reason(width: int) -> None:
    last = job("last", queued_s=123.4, longest_wait_s=123.4, status="out of memory", slowdown=None)
    report = plan(zico=policy(job("first"), job("second"), last, all_ok=False))
    report["jobs"] = [{**report["jobs"][0], "name": name} for name in ("first", "second", "last")]
    text = text_of(report, "zico", width)
    lines = text.splitlines()
    assert max(len(line) for line in lines if not line.startswith("in the queue until")) <= width
    assert (
        "in the queue until others have ended: last (123.4 s); all jobs would keep 24.0 MiB between iterations, one of "
        "them needs up to 72.0 MiB beside that, and the budget is 100.0 MiB, of which some is kept free for wrong "
        "forecasts\n"
    ) in text
    figures = next(line.split() for line in lines if line.startswith("zico "))
    assert "125.7" in figures  # seconds of waiting, the queue's among them
    report["budget_bytes"] = 120 * MIB
    assert "last (123.4 s); all jobs would fit, but fewer at once do more\n" in text_of(report, "zico", width)
    many = [job(f"job-{n}", queued_s=1.0) for n in range(10)]
    text = text_of(plan(zico=policy(*many)), "zico", width)
    assert ": job-0 (1.0 s), job-1 (1.0 s), " in text and ", job-6 (1.0 s), 3 more; all jobs" in text


@pytest.mark.parametrize(("arrival_s", "told"), [(0.0, "5.0 s"), (1.5, "6.5 s"), (20.0, "8.0 s")])
def test_the_picture_goes_on_until_all_jobs_have_arrived(arrival_s: float, told: str) -> None:
    report = plan(zico=policy(job("first"), job("second")))
    report["jobs"] = [report["jobs"][0], {**report["jobs"][1], "arrival_s": arrival_s}]
    assert f"the pool under zico, the first {told}:" in text_of(report, "zico")


def test_the_smallest_budget_for_all_is_that_for_all_at_once() -> None:
    lines = text_of(plan(zico=policy(job("first"), job("second")))).splitlines()
    above = next(line for line in lines if " none waits" in line)
    assert above.split()[-4:] == ["at", "once", "none", "waits"]


def test_factors_of_pairs_are_told_with_their_source() -> None:
    report = plan(zico=policy(job("first"), job("second")))
    pair = {
        "first": 0,
        "second": 1,
        "factor": 1.356,
        "factor_of_second": 1.356,
        "source": "learned",
        "runs": 3,
    }
    report["pairs"] = [pair]
    text = text_of(report)
    assert "first beside second: 1.36 times slower each (learned from 3 runs)\n" in text
    assert "no run has shown it" not in text
    report["pairs"] = [{**pair, "source": "given", "runs": 0}]
    assert "beside each other 1.36 times slower each (given)" in text_of(report)
    report["pairs"] = [{**pair, "source": "default", "factor": 1.0, "runs": 0}]
    assert "all pairs are taken not to slow each other down" in text_of(report)
    measured = {**pair, "factor_of_second": 1.1, "source": "measured", "runs": 0, "others": 0}
    report["pairs"] = [measured]
    assert "first beside second: 1.36 times slower, second 1.10 (by what each takes of" in text_of(report)
    assert "other pair" not in text_of(report)
    report["pairs"] = [{**measured, "others": 1, "rest": -0.1}]
    assert ", and -0.10 as runs of 1 other pair have shown)" in " ".join(text_of(report).split())
    report["pairs"] = [{**measured, "source": "others", "others": 2}]
    assert "1.36 times slower each (as runs of 2 other pairs have shown)" in text_of(report)
    report["pairs"] = [{**measured, "factor": 1.1 + i / 10, "factor_of_second": 1.0} for i in range(8)]
    assert "and 2 more pairs with smaller factors" in text_of(report) and "1.80 times" in text_of(report)


def test_a_sweep_says_how_many_ended() -> None:
    report = plan(zico=policy(job("first"), job("second")))
    stp, ended = {"zico": [1.0, 2.0]}, {"zico": [1, 2]}
    report["sweep"] = {"budget_bytes": [80 * MIB, 160 * MIB], "stp": stp, "ended": ended}
    text = text_of(report)
    assert "80.0 MiB          0.50  1.00 (1 of 2)" in text
    assert "160.0 MiB          1.00           2.00  ██████████████████████████████" in text


def test_what_is_held_goes_on_until_it_changes() -> None:
    timeline = [[0.0, 0, 5], [2.0, 1, 3], [2.5, 0, 0], [3.0, 1, 0]]
    assert held_over_time(timeline, 2, 4.0, 4) == [[5, 0], [5, 0], [5, 3], [0, 3]]
    assert held_over_time([], 2, 4.0, 3) == [[0, 0]] * 3
    assert held_over_time([[9.0, 0, 5]], 1, 4.0, 2) == [[0], [0]]


@pytest.mark.parametrize("coloured", [True, False])
def test_the_picture_fills_up_to_what_is_held(coloured: bool) -> None:
    columns = [[40, 40], [10, 0], [0, 100]]
    lines = pool_picture(columns, ["a", "b"], 100, height=10, span_s=3.0, coloured=coloured)
    rows = [line.plain[13:] for line in lines[1:11]]
    filled = [sum(row[i] != " " for row in rows) for i in range(3)]
    assert filled == [8, 1, 10]
    styles = {str(span.style) for line in lines[1:11] for span in line.spans}
    assert styles == {"cyan", "magenta"}


def test_a_cell_of_two_jobs_shows_both_where_there_are_colours() -> None:
    def cell(coloured: bool) -> tuple[str, set[str]]:
        lines = pool_picture([[50, 50]], ["a", "b"], 100, height=1, span_s=1.0, coloured=coloured)
        return lines[1].plain[13:], {str(span.style) for span in lines[1].spans}

    assert cell(True) == ("▄", {"cyan on magenta"})
    assert cell(False)[0] == "█"
