"""All parts of the GPU check together: their order and time, the table over them, the tests' and the stress's rows."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# Before scripts/bench, which has a gpu.py.
sys.path.insert(0, str(Path(__file__).parent.parent.parent / "scripts"))
from gpu import build, corpus, jobs, overview, processes, programs, stacks, stress, suite, whole
from gpu.parts import BUILD, PARTS, Given, Part
from gpu.runner import Row

ROOT = Path(__file__).parent.parent.parent
HEADER = {"gpu": "none", "driver": None, "torch": "2", "date": "today"}


def part(name: str, *rows: Row, limit_s: float = 10, builds: bool = False, then: float = 0.0) -> Part:
    def start(given: Given, _: float) -> tuple[int, Callable[[float, str], Iterator[Row]]]:
        def run(deadline: float, why: str) -> Iterator[Row]:
            for row in rows:
                time.sleep(min(then, max(0.0, deadline - time.monotonic())))
                yield Row(row.name, row.statement, why=why) if why else row

        return len(rows), run

    return Part(name, name.title(), "", limit_s, start, builds)


def checked(folder: Path) -> dict[str, dict[str, object]]:
    return {one["name"]: one for one in json.loads((folder / "check.json").read_text())["parts"]}


def test_one_table_over_all_parts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = part("one", Row("good", "s", "true"), Row("bad", "s", "false", claims={"it | is": False}))
    two = part("two", Row("absent", "s", why="no moon"))
    assert not whole.run([one, two], HEADER, Given(tmp_path), {}, 100)
    said = capsys.readouterr().out
    end = said[said.rindex("part ") :]
    assert "one: bad: false: not so: it | is" in end and "two: absent: not checked: no moon" in end
    assert "good" not in end
    told = checked(tmp_path)
    assert [told["one"][what] for what in ("true", "false", "not checked", "not reached")] == [1, 1, 0, 0]
    assert told["two"]["not true"] == [
        {"name": "absent", "verdict": "not checked", "told": "not checked: no moon"}
    ]
    text = (tmp_path / "check.md").read_text()
    assert "- torch: 2" in text and "driver" not in text
    assert "| one | bad | false: not so: it \\| is |" in text
    assert text.index("| bad |") < text.index("## One") < text.index("| good | true | s |")
    assert [row["name"] for row in told["one"]["rows"]] == ["good", "bad"]
    assert json.loads((tmp_path / "check.json").read_text())["header"]["gpu"] == "none"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["check.json", "check.md"]


def test_what_was_seen_before_an_end_is_written(tmp_path: Path) -> None:
    def broken(deadline: float, why: str) -> Iterator[Row]:
        yield Row("first", "s", "true")
        raise KeyboardInterrupt

    cut = Part("cut", "Cut", "", 10, lambda *_: (3, broken), builds=False)
    with pytest.raises(KeyboardInterrupt):
        whole.run([cut, part("later", Row("x", "s", "true"))], HEADER, Given(tmp_path), {}, 100)
    told = checked(tmp_path)
    assert (told["cut"]["true"], told["cut"]["not reached"]) == (1, 2)
    assert told["later"]["begun"] is False and "| later | not begun |" in (tmp_path / "check.md").read_text()


def test_a_fault_of_the_check_itself_is_told_and_the_rest_runs(tmp_path: Path) -> None:
    def broken(deadline: float, why: str) -> Iterator[Row]:
        yield Row("first", "s", "true")
        raise ValueError("no such moon")

    faulty = Part("faulty", "Faulty", "", 10, lambda *_: (3, broken), builds=False)
    later = part("later", Row("x", "s", "true"))
    assert not whole.run([faulty, later], HEADER, Given(tmp_path), {}, 100)
    told = checked(tmp_path)
    assert told["faulty"]["not true"][0]["told"] == "not checked: ValueError: no such moon"
    assert (told["faulty"]["not reached"], told["later"]["true"]) == (1, 1)


def test_a_part_that_can_not_even_begin_is_told_and_the_rest_runs(tmp_path: Path) -> None:
    def broken(given: Given, _: float) -> tuple[int, Callable[[float, str], Iterator[Row]]]:
        raise ValueError("no such moon")

    faulty = Part("faulty", "Faulty", "", 10, broken, builds=False)
    assert not whole.run([faulty, part("later", Row("x", "s", "true"))], HEADER, Given(tmp_path), {}, 100)
    told = checked(tmp_path)
    assert told["faulty"]["not true"][0]["told"] == "not checked: ValueError: no such moon"
    assert (told["faulty"]["not reached"], told["later"]["true"]) == (0, 1)


def test_time_that_is_not_taken_goes_to_those_behind() -> None:
    parts = [part("a", limit_s=10), part("b", limit_s=20), part("c", limit_s=5)]
    now = time.monotonic()
    clock = whole.Clock(parts, {}, 100)
    assert [round(clock.deadline(one) - now) for one in parts] == [10, 30, 100]
    short = whole.Clock(parts, {}, 12)
    assert [round(short.deadline(one) - now) for one in parts] == [10, 12, 12]
    own = whole.Clock(parts, {"b": 3, "c": 50}, float("inf"))
    assert [round(own.deadline(one) - now) for one in parts] == [10, 3, 50]


def test_a_part_without_time_says_so_and_the_rest_is_told(tmp_path: Path) -> None:
    slow = part("slow", Row("x", "s", "true"), limit_s=0.5, then=5)
    late = part("late", Row("y", "s", "true"), limit_s=0.1)
    begin = time.monotonic()
    assert not whole.run([slow, late], HEADER, Given(tmp_path), {}, 1)
    assert time.monotonic() - begin < 4
    assert checked(tmp_path)["late"]["not true"][0]["told"] == f"not checked: {processes.NO_TIME}"


def test_what_has_no_time_left_is_not_begun(tmp_path: Path) -> None:
    """To count its rows alone may take a minute."""
    begun: list[float] = []

    def start(given: Given, deadline: float) -> tuple[int, Callable[[float, str], Iterator[Row]]]:
        begun.append(deadline - time.monotonic())
        return 1, lambda *_: iter([Row("x", "s", "true")])

    slow = part("slow", Row("x", "s", "true"), limit_s=1.5, then=5)
    late = Part("late", "Late", "", 0.1, start, builds=False)
    assert not whole.run([slow, late], HEADER, Given(tmp_path), {}, 2)
    assert (
        not begun and checked(tmp_path)["late"]["not true"][0]["told"] == f"not checked: {processes.NO_TIME}"
    )
    assert whole.run([late], HEADER, Given(tmp_path), {}, 7) and 6 < begun[0] <= 7


def test_what_was_said_is_in_a_file_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(overview, "LOG", 200)
    monkeypatch.setattr(overview, "LOGS", 700)
    (tmp_path / overview.FAILURES).write_text("of an earlier run")
    rows = [Row("good", "s", "true", log="all is well")]
    assert whole.run([part("fine", *rows)], HEADER, Given(tmp_path), {}, 100)
    assert not (tmp_path / overview.FAILURES).exists() and overview.FAILURES not in capsys.readouterr().out
    rows += [Row(f"bad{n}", "s", "false", log="too early\n" + "x" * 185 + "\nlast words") for n in range(5)]
    whole.run([part("one", *rows)], HEADER, Given(tmp_path), {}, 100)
    text = (tmp_path / overview.FAILURES).read_text()
    assert "=== one: bad0: false\n" in text and text.count("last words") == 3
    assert "all is well" not in text and "too early" not in text and "bad4: no room left" in text
    assert capsys.readouterr().out.count(str(tmp_path / overview.FAILURES)) == 1
    assert overview.FAILURES in (tmp_path / "check.md").read_text()
    assert "last words" not in (tmp_path / "check.json").read_text()


def test_a_command_has_less_time_than_its_part() -> None:
    """Or the end of the part cuts off what hangs, and nobody knows that it does."""
    has = {one.name: one.limit_s for one in PARTS}
    assert max(case.limit_s for case in jobs.CASES) < has["jobs"] and has["corpus"] > corpus.LIMIT_S
    assert all(case.enough_s < case.limit_s for case in jobs.CASES)
    assert stress.SECONDS[0] + stress.GRACE_S < has["stress"]
    text = (ROOT / "tests" / "end_to_end" / "test_on_gpu.py").read_text()
    (limit_s,) = re.findall(r"^LIMIT_S = ([\d.]+)", text, re.MULTILINE)
    assert float(limit_s) < has["tests"]


def test_who_can_not_tell_where_it_is_is_not_asked() -> None:
    """SIGQUIT would end it."""
    process = subprocess.Popen(["sleep", "60"])
    try:
        time.sleep(0.2)
        stacks.ask(process.pid)
        assert process.poll() is None and process.pid in stacks.descendants(os.getpid())
    finally:
        process.kill()
        process.wait()


def test_the_shim_is_built_once_and_before_what_needs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    built = []

    def run(deadline: float) -> Iterator[Row]:
        built.append(1)
        yield Row("shim_builds", "s", "false", claims={"exit code 1": False})

    monkeypatch.setattr(build, "run", run)
    parts = [part("facts", Row("a", "s", "true"))]
    parts += [part(name, Row(name, "s", "true"), builds=True) for name in ("jobs", "bench")]
    whole.run(parts, HEADER, Given(tmp_path), {}, 100)
    told = checked(tmp_path)
    assert list(told) == ["facts", "build", "jobs", "bench"] and built == [1]
    assert told["facts"]["true"] == 1
    assert "the shim was not built, see shim_builds" in told["bench"]["not true"][0]["told"]


def test_all_parts_are_there_and_leave_the_benchmark_last() -> None:
    names = [one.name for one in PARTS]
    assert names == ["bridge", "jobs", "stress", "facts", "tests", "corpus", "bench"]
    assert sum(one.limit_s for one in (BUILD, *PARTS[:-1])) < 570


def test_all_parts_give_as_many_rows_as_they_say(tmp_path: Path) -> None:
    for one in (one for one in PARTS if one.name != "facts"):
        expected, start = one.start(Given(tmp_path), time.monotonic() + 60)
        rows = list(start(time.monotonic() + 60, "no moon"))
        assert len(rows) == expected and {row.why for row in rows} == {"no moon"}, one.name


def test_the_build_of_the_shim_fails_in_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(build, "FOLDER", tmp_path / "build")
    monkeypatch.setattr(programs, "ROOT", tmp_path / "nowhere")
    shim, *others = build.run(time.monotonic() + 60)
    assert shim.verdict == "false" and "CMake Error" in next(iter(shim.claims))
    assert [row.why for row in others] == ["the shim was not built"] * 2


def test_what_the_end_of_the_time_cuts_off_says_how_far_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    program = "import sys, time; print('step 7', flush=True); print('warned', file=sys.stderr, flush=True); "
    program += "time.sleep(60)"
    row = programs.run_row(Row("slow", "s"), [sys.executable, "-c", program], {}, time.monotonic() + 3)
    assert (row.verdict, row.claims) == ("not checked", {})
    assert row.why.startswith("no end within ") and row.why.endswith("its last words: step 7 | warned")


def test_the_trees_package_is_found_as_an_installed_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(programs, "SITE", tmp_path / "site")
    for _ in range(2):
        build.make_site()
    monkeypatch.setenv("PYTHONPATH", "")
    ask = "import importlib.metadata as m, gpushare; print(gpushare.__file__, m.version('gpushare'))"
    env = {**os.environ, "PYTHONPATH": programs.python_path()}
    done = subprocess.run([sys.executable, "-c", ask], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.split() == [str(tmp_path / "site" / "gpushare" / "__init__.py"), "0"], done.stderr


def test_what_is_built_lies_as_the_package_has_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(programs, "SHIM", tmp_path / "package" / "libgpushare.so")
    (tmp_path / "package").mkdir()
    (tmp_path / "libgpushare.so").write_text("built")
    build.install(tmp_path)
    assert programs.SHIM.read_text() == "built"
    assert (tmp_path / "package" / "source" / "bridge" / "allocator.cpp").exists()


STRESS = """#!{python}
import os, sys
print("iterations 12\\npages_changed_owner 3\\nwrong_reads", {wrong})
print("the first: at 1000" if {wrong} else "", end="", flush=True)
sys.exit({code})
"""


@pytest.mark.parametrize(
    ("wrong", "code", "verdict"), [(0, 0, "true"), (2, 1, "false"), (0, -6, "false"), (0, 3, "not checked")]
)
def test_the_stress_is_told(
    wrong: int, code: int, verdict: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / build.STRESS
    end = "os.abort()" if code < 0 else f"sys.exit({code})"
    text = STRESS.format(python=sys.executable, wrong=wrong, code=code).replace(f"sys.exit({code})", end)
    program.write_text(text)
    program.chmod(0o755)
    monkeypatch.setattr(build, "FOLDER", tmp_path)
    first, _ = stress.run(time.monotonic() + 60)
    assert first.verdict == verdict, first
    assert first.figures == {"iterations": 12, "pages_changed_owner": 3, "wrong_reads": wrong}
    if code == 1:
        assert "the first: at 1000" in next(iter(first.claims))


def test_a_stress_that_does_not_end_is_false_and_one_without_time_is_not_begun(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / build.STRESS
    program.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(60)\n")
    program.chmod(0o755)
    monkeypatch.setattr(build, "FOLDER", tmp_path)
    monkeypatch.setattr(stress, "GRACE_S", 0.5)
    first, second = stress.run(time.monotonic() + 2)
    assert first.verdict == "false" and "it ends within" in next(iter(first.claims)), first
    assert (second.verdict, second.why) == ("not checked", processes.NO_TIME)


MARKED = """
import pytest
pytestmark = pytest.mark.gpu
def test_good(): pass
def test_bad(): assert 1 == 2
@pytest.mark.skip(reason="no moon")
def test_absent(): pass
@pytest.mark.alone
def test_measures(): pass
"""


def run_suite(limit_s: float) -> list[Row]:
    tests = suite.collected(time.monotonic() + 60)
    return list(suite.run(tests, time.monotonic() + limit_s))


def test_marked_tests_are_rows_as_they_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is not marked is not even imported."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\nmarkers = ["gpu: x", "alone: y"]\n')
    (tmp_path / "tests" / "test_some.py").write_text(MARKED)
    (tmp_path / "tests" / "test_other.py").write_text("import no_such_module\n")
    monkeypatch.setattr(programs, "ROOT", tmp_path)
    rows = {row.name: row for row in run_suite(60)}
    assert next(iter(rows)) == "test_some.py::test_measures", "what measures the device comes first"
    told = {name.partition("::")[2]: row.verdict for name, row in rows.items()}
    assert told == {
        "test_good": "true",
        "test_bad": "false",
        "test_absent": "not checked",
        "test_measures": "true",
    }
    assert "no moon" in rows["test_some.py::test_absent"].why
    assert "assert 1 == 2" in next(iter(rows["test_some.py::test_bad"].claims))


def test_a_test_that_hangs_leaves_the_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    text = MARKED + "def test_hangs():\n    import time\n    time.sleep(600)\n"
    (tmp_path / "tests" / "test_some.py").write_text(text)
    monkeypatch.setattr(programs, "ROOT", tmp_path)
    rows = {row.name.partition("::")[2]: row for row in run_suite(30)}
    assert (rows["test_good"].verdict, rows["test_hangs"].why) == ("true", processes.NO_TIME)


STANDS_STILL = """
import pytest, subprocess, sys
pytestmark = pytest.mark.gpu
HOST = '''
import faulthandler, signal, time
faulthandler.register(signal.SIGQUIT)
def waits_for_ever():
    time.sleep(600)
waits_for_ever()
'''
def test_tells_much():
    pytest.fail("it begins here " + "x" * 3000)
def test_hangs(tmp_path):
    with open(tmp_path / "host.log", "w") as log:
        subprocess.run([sys.executable, "-c", HOST], stderr=log)
"""


def test_what_a_test_says_and_where_one_hangs_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    (tmp_path / "tests" / "test_some.py").write_text(STANDS_STILL)
    monkeypatch.setattr(programs, "ROOT", tmp_path)
    rows = {row.name.partition("::")[2]: row for row in run_suite(15)}
    assert "it begins here" in rows["test_tells_much"].log
    assert rows["test_hangs"].why == processes.NO_TIME and "in waits_for_ever" in rows["test_hangs"].log


def test_a_pytest_that_names_no_tests_says_why_in_its_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "tests").mkdir()
    test = tmp_path / "tests" / "test_some.py"
    test.write_text(MARKED + "import no_such_moon\n")
    monkeypatch.setattr(programs, "ROOT", tmp_path)
    (row,) = run_suite(60)
    assert row.verdict == "not checked" and "no_such_moon" in row.why, row
    test.write_text(MARKED + "import time\ntime.sleep(50)\n")
    begin = time.monotonic()
    tests = suite.collected(begin + 3)
    assert tests.why.startswith(processes.NO_TIME) and time.monotonic() - begin < 20


def test_a_pytest_that_can_not_begin_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_some.py").write_text(MARKED)
    monkeypatch.setattr(programs, "ROOT", tmp_path)  # so the plugin is not found
    rows = run_suite(60)
    assert len(rows) == 4 and all("No module named 'gpu'" in row.why for row in rows), rows


BLOCKED = (
    "import sys\nfor name in ('hypothesis', 'matplotlib', 'sklearn', 'numpy', 'xdist', 'pytest_timeout'):\n"
)
BLOCKED += "    sys.modules[name] = None\n"


def test_marked_tests_need_no_package_that_a_machine_may_lack(tmp_path: Path) -> None:
    """They are collected there; without a GPU each is skipped, with the reason."""
    (tmp_path / "lean.py").write_text(BLOCKED)
    path = os.pathsep.join((str(tmp_path), str(ROOT / "scripts"), os.environ.get("PYTHONPATH", "")))
    lean = {"PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "CUDA_VISIBLE_DEVICES": ""}
    command = suite.command("gpu", "-p", "lean", "-rs")
    done = subprocess.run(command, env={**os.environ, **lean}, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    count = len(suite.collected(time.monotonic() + 60).names)
    assert f"{count} skipped" in done.stdout and "GPU" in done.stdout, done.stdout
