"""scripts/bench/gpu_rows: what the rows compute, with nothing that runs but plain python."""

import json
import math
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).parent.parent.parent / "scripts" / "bench"))
from gpu_rows import allocation, busy, equal, pair, plan, results, running
from gpu_rows.batch import Search, decide, ratios
from gpu_rows.bench import Bench, Settings, Solo
from gpu_rows.row import NOT_YET, NoTimeLeft, NotMeasured, Row, Task
from gpu_rows.running import Ran, Runner
from gpu_rows.timing import step_s, together

from gpushare.telemetry.allocation_log import ALLOCATED, FREED, OPENED, Entry

SETTINGS = Settings(3, 6, 1, 1 << 30, 1 << 30, 64, "")


def of_loop(loop: float, empty: float, **more: dict[str, float]) -> dict[str, dict[str, float]]:
    return {"python": {"512": loop}, "empty": {"512": empty}, "calls": {"clock": loop / 10}, **more}


def test_of_allocations_the_mean_and_what_they_add_to_the_loop() -> None:
    plain, jobs = [of_loop(80, 140), of_loop(120, 160)], [of_loop(150, 180), of_loop(150, 160)]
    figures = allocation.figures_of(plain, jobs)
    assert figures == pytest.approx(
        {
            "clock plain_ns": 10,
            "clock gpushare_ns": 15,
            "512 python_ns": 100,
            "512 gpushare python_ns": 150,
            "512 empty plain_ns": 150,
            "512 empty gpushare_ns": 170,
            "512 empty over_plain": 170 / 150,
            "512 own_over_plain": 0.4,
        }
    )
    with_raw = [{**run, "raw": {"512": 300.0}} for run in plain]
    assert "512 raw over_plain" not in allocation.figures_of(with_raw, jobs)  # not measured in jobs
    assert allocation.figures_of(with_raw, with_raw)["512 raw over_plain"] == 1
    nothing_added = allocation.figures_of([of_loop(100, 100)], jobs)
    assert "512 own_over_plain" not in nothing_added and nothing_added["512 empty over_plain"] == 1.7


class Times:
    """A runner whose scripts write the next of these; None: there is no time left."""

    device = "cpu"

    def __init__(self, *found: dict[str, dict[str, float]] | None) -> None:
        self.found, self.order = list(found), ""

    def python(self, jobs: list[str], clock: bool) -> Ran:
        return self._ran(jobs[0], "A")

    def gpushare(self, jobs: list[str], budget_bytes: int, clock: bool) -> Ran:
        return self._ran(jobs[0], "B")

    def _ran(self, job: str, who: str) -> Ran:
        if (found := self.found.pop(0)) is None:
            raise NoTimeLeft
        self.order += who
        Path(job.split("--out ")[1]).write_text(json.dumps(found))
        return Ran()


def test_allocations_are_measured_in_turns_as_far_as_there_is_time() -> None:
    def compared(*found: dict[str, dict[str, float]] | None) -> tuple[str, Row]:
        runner, row = Times(*found), Row("allocation", "", "")
        allocation.compare(Bench(runner, SETTINGS), "", row)
        return runner.order, row

    first, second, third, fourth = (of_loop(n, 2 * n) for n in (1, 2, 4, 5))
    order, row = compared(first, second, third, fourth)
    assert order == "ABBA" and row.figures["512 python_ns"] == 3 == row.figures["512 gpushare python_ns"]
    order, row = compared(first, second, third, None)
    assert order == "ABB" and row.figures["512 python_ns"] == 1
    assert any("no time left" in note for note in row.notes)
    with pytest.raises(NoTimeLeft):
        compared(first, None)


def test_two_that_slow_each_other_down() -> None:
    # From 6, when the second has done three, to 9: three steps of one second alone, 1.5 of one and a half.
    both = together([[1, 2, 3, 4, 5, 6, 7, 8, 9], [2, 4, 6, 8, 10, 12]], 3)
    assert (both.window_s, both.steps) == (3, [3, 1.5])
    assert both.stp([0.5, 1.5]) == pytest.approx((3 * 0.5 + 1.5 * 1.5) / 3)
    assert both.antt([0.5, 1.5]) == pytest.approx((3 / 1.5 + 3 / 2.25) / 2)


def test_one_after_the_other_in_turns_is_one() -> None:
    assert together([[2, 4, 6, 8, 10], [3, 5, 7, 9, 11]], 3).stp([1, 1]) == pytest.approx(1)


def test_what_did_not_run_side_by_side_has_no_pace() -> None:
    with pytest.raises(NotMeasured, match="did not run side by side"):
        together([[1, 2, 3, 4], [5, 6, 7, 8]], 3)
    with pytest.raises(NotMeasured, match="fewer than 3"):
        together([[1, 2, 3, 4], []], 3)


def test_first_steps_do_not_count() -> None:
    assert step_s([10, 20, 30, 31, 32], 3) == 1
    with pytest.raises(NotMeasured):
        step_s([10, 20, 30], 3)


@given(st.integers(0, 3000), st.integers(1, 500), st.sampled_from([2, 16, 64]))
def test_the_largest_that_fits_is_found_in_few_tries(limit: int, guess: int, grain: int) -> None:
    tried: list[int] = []

    def fits(size: int) -> bool:
        tried.append(size)
        return size <= limit

    search = Search(fits).to(guess, grain)
    found = search.fitting
    assert limit <= search.most and found <= limit <= found + max(1, found // grain)
    assert len(tried) == len(set(tried)) <= 3 + 2 * math.log2(max(limit, guess) + 2)


@given(st.integers(1, 3000), st.integers(1, 3000))
def test_nothing_above_the_most_is_tried(most: int, limit: int) -> None:
    tried: list[int] = []

    def fits(size: int) -> bool:
        tried.append(size)
        return size <= limit

    search = Search(fits, 0, most + 1).to(max(1, most // 2), 10_000)
    assert search.fitting == search.most == min(most, limit)
    assert max(tried) <= most


@given(st.integers(1, 3000), st.integers(0, 3000), st.floats(0, 1), st.sampled_from([1, 2, 16]))
def test_sizes_are_tried_until_it_is_known_which_side_of_the_target_they_are_on(
    alone: int, together: int, least: float, grain: int
) -> None:
    """Of `alone`, and of `together` or fewer, that fit."""
    together = min(alone, together)
    one = Search(lambda size: size <= alone).to(64, grain)

    def both_fit(size: int) -> bool:
        one.fitting = max(one.fitting, size * (size <= together))
        return size <= together

    two = Search(both_fit, 0, one.failing).to(max(1, one.fitting // 2), grain)
    if one.fitting == 0:
        return
    low, high = ratios(one, two)
    assert low <= together / alone <= high
    assert decide(one, two, least) == (together / alone >= least)


class Printing(Runner):
    """Jobs that print what a test says."""

    def __init__(self, plain: list[bytes], shared: list[bytes]) -> None:
        super().__init__("cpu", math.inf, 1)
        self._plain, self._shared = plain, shared

    def python(self, jobs: list[str], **_: object) -> Ran:
        return Ran([], [self._plain.pop(0)])

    def gpushare(self, jobs: list[str], *_: object, **__: object) -> Ran:
        ok = {"exit_code": 0, "status": "ok"}
        jobs_ = [{"name": "one", **ok}, {"name": "two", **ok}]
        return Ran([], self._shared, [], {"jobs": jobs_, "budget_bytes": 1, "overlap_s": 1, "eligible_s": 2})


def equality(monkeypatch: pytest.MonkeyPatch, plain: list[bytes], shared: list[bytes]) -> Row:
    bench = Bench(Printing(plain, shared), SETTINGS)
    monkeypatch.setattr(Bench, "solo", lambda *_: Solo(1, 1, 9, None, None, None))
    task = Task("equal", "x", "", lambda row: equal.measure(bench, "bert+bert", 1.6, row))
    row = task.empty()
    bench.fill(task, row, lambda: None)
    return row


def test_one_byte_that_differs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    row = equality(monkeypatch, [b"a\nb\n", b"a\nb\n", b"c\n", b"c\n"], [b"a\nB\n", b"c\n"])
    assert not row.why and row.claims == {"one prints the same": False, "two prints the same": True}
    assert row.notes == ["one: line 2 is 'B' instead of 'b'"]


def test_what_plain_python_does_not_repeat_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    row = equality(monkeypatch, [b"a\n", b"b\n"], [])
    assert "does not print the same twice" in row.why and not row.claims


def test_events_of_a_log() -> None:
    def entry(what: int, address: int, size: int = 0) -> Entry:
        return Entry(0, address, size, 0, 1, 1, what, 0)

    log = [
        entry(FREED, 7),  # from before
        entry(OPENED, 0),
        entry(ALLOCATED, 7, 512),
        entry(ALLOCATED, 8, 64),
        entry(FREED, 7),
        entry(ALLOCATED, 7, 32),
    ]
    assert allocation.events_of(log) == [(2, 512), (3, 64), (2, 0), (5, 32)]


def test_what_does_not_end_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "hangs.py"
    script.write_text(
        f"import os, time\nopen({str(tmp_path / 'pids')!r}, 'a').write(f'{{os.getpid()}} ')\ntime.sleep(99)"
    )
    runner = Runner("cpu", math.inf, 2)
    with pytest.raises(NotMeasured, match="no end within 2 s"):
        runner.python([str(script)] * 2, clock=False)
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == 2 and not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert runner.lines == [f"python {script} & python {script}"]


def test_the_end_of_all_time_is_not_a_fault_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "LEAST_S", 0.1)
    (tmp_path / "hangs.py").write_text("import time\ntime.sleep(99)")
    runner = Runner("cpu", time.monotonic() + 0.5, 100)
    with pytest.raises(NoTimeLeft):
        runner.python([str(tmp_path / "hangs.py")], clock=False)


def test_what_failed_is_told_with_its_last_words(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text("raise SystemExit('there is no moon')")
    with pytest.raises(NotMeasured, match="exit code 1: there is no moon"):
        Runner("cpu", math.inf, 60).python([str(tmp_path / "fails.py")], clock=False)


def test_who_waits_for_one_that_failed_does_not_hold_up_the_benchmark(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("import time\ntime.sleep(99)")
    (tmp_path / "other.py").write_text("raise SystemExit('out of memory')")
    with pytest.raises(NotMeasured, match="exit code 1: out of memory"):
        Runner("cpu", math.inf, 60).python(
            [str(tmp_path / "one.py"), str(tmp_path / "other.py")], clock=False
        )


def test_processes_wait_for_each_others_first_step(tmp_path: Path) -> None:
    for name, slow_s in (("one", 0), ("other", 1)):
        text = f"import time\ntime.sleep({slow_s})\nfor step in range(3):\n    print(step)\n    time.sleep(0.1)\n"
        (tmp_path / f"{name}.py").write_text(text)
    one, other = (
        Runner("cpu", math.inf, 60).python([str(tmp_path / "one.py"), str(tmp_path / "other.py")]).ends_s
    )
    assert one[0] < other[0] < one[1] and len(one) == len(other) == 3


def test_a_row_keeps_what_came_before_its_failure() -> None:
    def measure(row: Row) -> None:
        row.figures["a_s"] = 1.0
        row.part("b", lambda: fail("no b"))
        fail("no c")

    def fail(why: str) -> None:
        raise NotMeasured(why)

    task = Task("kind", "name", "what", measure)
    row = task.empty()
    assert row.why == NOT_YET
    task.fill(row)
    assert (row.why, row.figures, row.notes) == ("no c", {"a_s": 1.0}, ["b: no b"])


def test_commands_of_what_was_known_before_are_in_each_row() -> None:
    bench = Bench(Runner("cpu", math.inf, 1), SETTINGS)

    def start() -> int:
        bench.runner.lines.append("a command")
        return 5

    def measure(row: Row) -> None:
        row.figures["n"] = bench.once("key", start)

    for name in ("first", "second"):
        task = Task("kind", name, "what", measure)
        row = task.empty()
        bench.fill(task, row, lambda: None)
        assert (row.commands, row.figures) == (["a command"], {"n": 5})


def test_what_is_known_is_written_before_each_command(tmp_path: Path) -> None:
    bench = Bench(Runner("cpu", math.inf, 9), SETTINGS)
    (tmp_path / "nothing.py").write_text("")
    written: list[tuple[str, dict[str, float], int]] = []

    def measure(row: Row) -> None:
        for step in range(2):
            row.figures[f"known_{step}"] = step
            bench.runner.python([str(tmp_path / "nothing.py")], clock=False)

    task = Task("kind", "name", "what", measure)
    row = task.empty()
    bench.fill(task, row, lambda: written.append((row.why, dict(row.figures), len(row.commands))))
    cut = "it was cut off in the middle"
    both = {"known_0": 0, "known_1": 1}
    assert written == [(cut, {"known_0": 0}, 1), (cut, both, 1), ("", both, 1)]


def test_rows_are_the_first_of_each_kind_then_the_second() -> None:
    bench = Bench(Runner("cpu", math.inf, 1), SETTINGS)
    chosen = {"alone_of": ["a", "b", "c"], "pairs": ["a+b", "b+c"], "replays": [], "batches": ["a", "b"]}
    tasks = plan.tasks(bench, list(plan.KINDS), **chosen, factors=[1.1, 1.6], batch_guess=1)
    assert [task.kind for task in tasks] == [
        *plan.KINDS,
        "pair",
        "equal",
        "alone",
        "batch",
        "budgets",
        "alone",
    ]
    assert [task.name for task in tasks if task.kind == "pair"] == ["a+b at 1.6", "b+c at 1.6"]
    some = plan.tasks(bench, ["batch", "pair"], **chosen, factors=[1.1, 1.5], batch_guess=1)
    assert [task.name for task in some] == ["a+b at 1.5", "a largest", "b+c at 1.5", "b largest"]


def test_how_busy_a_device_was_is_a_mean_of_what_was_seen_past_the_beginning() -> None:
    samples = busy.Samples([(at / 10, float(at >= 25)) for at in range(100)])
    assert samples.mean(1.0, 2.8) == "the steps took 1.8 s, too little for NVML to see"
    assert samples.mean(1.0, 3.95) == pytest.approx(15 / 20)
    assert busy.Samples(why="no").mean(0, 100) == "no"
    with busy.watched("cpu") as seen:
        pass
    assert seen.mean(0, 100) == "only a GPU tells"


@pytest.mark.parametrize(
    ("factor", "parts", "stp", "claimed"),
    [
        (1.6, (0.9, 0.5), 1.2, True),
        (1.6, (0.9, 0.5), 1.1, False),
        (1.6, (0.9, 0.9), 1.1, None),  # they leave too little
        (1.3, (0.9, 0.5), 1.1, None),
    ],
)
def test_who_leaves_the_device_idle_has_a_target(
    factor: float, parts: tuple[float, float], stp: float, claimed: bool | None
) -> None:
    bench, row = Bench(Runner("cuda", math.inf, 1), SETTINGS), Row("pair", "", "")
    row.figures["stp"] = stp
    solos = [Solo(1, 1, 9, None, None, None, part) for part in parts]
    pair.idle(bench, factor, solos, row)
    assert row.figures["stp_of_idle_times"] == pytest.approx(2 / sum(parts))
    assert list(row.claims.values()) == ([] if claimed is None else [claimed])
    with pytest.raises(NotMeasured, match="not watched"):
        pair.idle(bench, factor, [Solo(1, 1, 9, None, None, None)] * 2, row)


def test_files_have_all_rows_from_the_start(tmp_path: Path) -> None:
    rows = [Row("kind", "one", "what"), Row("kind", "two", "what")]
    about = {"gpu": "a card", "torch": "2.11.0+cu130"}
    written = results.Results(str(tmp_path / "x"), "python x.py", rows, about)
    written.write()
    rows[0].why, rows[0].figures, rows[0].commands = "", {"peak_bytes": 3 << 20}, ["a | b"]
    text = written.write()
    assert (tmp_path / "x.md").read_text() == text + "\n"
    assert (
        "- torch: 2.11.0+cu130" in text and json.loads((tmp_path / "x.json").read_text())["gpu"] == "a card"
    )
    assert "| one | peak_bytes | 3 MiB |" in text and "| one | command | `a \\| b` |" in text
    assert f"| two | not measured | {NOT_YET} |" in text
