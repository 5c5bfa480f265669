"""The runner of GPU checks, with checks that need no GPU, and its command where there is none."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch

# Before scripts/bench, which has a gpu.py.
sys.path.insert(0, str(Path(__file__).parent.parent.parent / "scripts"))
sys.path.append(str(Path(__file__).parent))
from gpu import facts, libraries, programs
from gpu.checks import Check, checks_of
from gpu.parts import PARTS, Given
from gpu.report import Report, table
from gpu.runner import Row, run

SCRIPTS = Path(__file__).parent.parent.parent / "scripts"
FAKES = {one.name: one for one in checks_of(["fake_checks"])}


def rows(folder: Path, *checks: Check, limit_s: float = 100) -> list[Row]:
    needed = sorted({library for one in checks for library in one.libraries})
    return list(run(list(checks), libraries.Builds(needed, folder), time.monotonic() + limit_s))


def row(folder: Path, name: str) -> Row:
    return rows(folder, FAKES[name])[0]


def gpu_check(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPTS / "gpu_check.py"), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    )


def test_true_with_its_figures(tmp_path: Path) -> None:
    found = row(tmp_path, "true_one")
    assert (found.verdict, found.figures, found.claims) == ("true", {"cost_us": 1.25}, {"it is so": True})


@pytest.mark.parametrize(
    ("name", "verdict", "why"),
    [
        ("false_one", "false", ""),
        ("empty_one", "not checked", "claimed nothing"),
        ("impossible_one", "not checked", "there is no moon"),
        ("raising_one", "not checked", "ValueError: something unforeseen"),
        ("crashing_one", "not checked", "died of SIGSEGV; its last words: near the end"),
        ("exiting_one", "not checked", "ended with exit code 7"),
        ("importing_one", "not checked", "no_such_module_anywhere"),
    ],
)
def test_what_is_not_true(tmp_path: Path, name: str, verdict: str, why: str) -> None:
    found = row(tmp_path, name)
    assert found.verdict == verdict
    assert why in found.why


@pytest.mark.parametrize("name", ["crashing_one", "raising_one"])
def test_figures_before_a_failure_are_kept(tmp_path: Path, name: str) -> None:
    assert row(tmp_path, name).figures == {"before": 1}


def ended(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_hang_is_killed_with_its_children(tmp_path: Path) -> None:
    begin = time.monotonic()
    found = row(tmp_path, "hanging_one")
    assert time.monotonic() - begin < 60
    assert found.verdict == "not checked"
    assert "no end within 1 s" in found.why and "in hanging_one" in found.log
    time.sleep(0.5)
    assert all(ended(found.figures[name]) for name in ("child", "process"))


def test_one_failure_does_not_spoil_the_next(tmp_path: Path) -> None:
    found = rows(
        tmp_path, *(FAKES[name] for name in ("crashing_one", "true_one", "hanging_one", "valuable_one"))
    )
    assert [one.verdict for one in found] == ["not checked", "true", "not checked", "true"]


def test_beside_a_quiet_one_nothing_gets_ready(tmp_path: Path) -> None:
    quiet, slow = rows(tmp_path, FAKES["quiet_one"], FAKES["slow_one"])
    assert slow.figures["imported_s"] < quiet.figures["begun_s"]


def test_the_limit_holds_for_all_together(tmp_path: Path) -> None:
    begin = time.monotonic()
    patient = [FAKES["hanging_one"], FAKES["true_one"]]
    found = rows(tmp_path, *patient, limit_s=0.2)
    assert time.monotonic() - begin < 30
    assert [one.verdict for one in found] == ["not checked", "not checked"]
    assert "the limit of 0.2 s was reached" in found[1].why


def test_a_killed_runner_leaves_no_worker(tmp_path: Path) -> None:
    code = (
        "import dataclasses, pathlib, sys, time; sys.path += sys.argv[1:]\n"
        "from gpu import libraries, runner\nfrom gpu.checks import checks_of\n"
        "(one,) = (c for c in checks_of(['fake_checks']) if c.name == 'hanging_one')\n"
        "patient = [dataclasses.replace(one, limit_s=200)] * 2\n"
        "list(runner.run(patient, libraries.Builds([], pathlib.Path('.')), time.monotonic() + 200))"
    )
    command = [sys.executable, "-c", code, str(SCRIPTS), str(Path(__file__).parent)]
    runner = psutil.Process(subprocess.Popen(command, cwd=tmp_path).pid)
    deadline = time.monotonic() + 30
    while len(workers := runner.children()) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1)
    children = [child for worker in workers for child in worker.children()]
    runner.kill()
    runner.wait()
    time.sleep(0.5)
    for child in children:  # what the fake started for itself
        child.kill()
    assert len(workers) == 2
    assert all(ended(one.pid) for one in workers)


def test_the_valuable_come_first() -> None:
    ranks = [one.rank for one in checks_of(["fake_checks"])]
    assert ranks == sorted(ranks)
    assert next(iter(FAKES)) == "valuable_one"


def test_libraries_are_built_and_loaded(tmp_path: Path) -> None:
    found = row(tmp_path, "library_one")
    assert found.verdict == "true", found.why


def test_a_library_that_does_not_compile_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "driver.cpp").write_text("int wrong = ;\n")
    monkeypatch.setattr(libraries, "SOURCES", tmp_path)
    found = row(tmp_path, "library_one")
    assert found.verdict == "not checked"
    assert "driver.cpp does not compile here" in found.why


def test_a_report_has_all_rows() -> None:
    report = Report("Title", 2)
    report.rows.append(
        Row("one", "A statement.", "false", claims={"this | is not so": False}, figures={"us": 1.23456})
    )
    assert [one["verdict"] for one in report.content()] == ["false"]
    assert report.summary() == "0 true, 1 false, 0 not checked, 1 not reached"
    text = report.markdown()
    assert "| one | false: not so: this \\| is not so | A statement. | us 1.235 | 0.0 |" in text
    assert not report.all_checked
    report.rows.append(Row("two", "Another.", "true"))
    assert report.all_checked


def test_the_table_tells_why() -> None:
    lines = table([Row("one", "A statement.", "not checked", "no moon", figures={"us": {"a": 2.0}})])
    assert "not checked: no moon" in lines
    assert "us {a: 2}" in lines


def test_facts_are_listed_without_torch() -> None:
    done = gpu_check("--facts", "--list")
    assert done.returncode == 0
    assert "backward_has_one_worker" in done.stdout
    code = f"import sys; sys.path.append({str(SCRIPTS)!r}); from gpu import checks, facts\n"
    code += "checks.checks_of(facts.MODULES); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_rows_can_be_chosen() -> None:
    done = gpu_check("--jobs", "--corpus", "--facts", "--list", "--only", "graph_trees", "compile_inductor")
    assert done.returncode == 0
    assert [line.split(": ")[0] for line in done.stdout.splitlines() if line[0] != " "] == ["jobs", "corpus"]
    given = Given(Path(), ("graph_trees", "compile_inductor"))
    for part, count in (("jobs", 1), ("corpus", 2), ("facts", 0)):
        expected, start = next(one for one in PARTS if one.name == part).start(given, 0.0)
        rows = list(start(time.monotonic() - 1, "no moon"))
        assert (expected, len(rows)) == (count, count), part
        assert {row.why for row in rows} <= {"no moon"}


def test_names_are_unique_and_statements_are_sentences() -> None:
    every = checks_of(facts.MODULES)
    assert len({one.name for one in every}) == len(every)
    assert all(one.statement.endswith((".", ".'")) and one.rank in (1, 2, 3) for one in every)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "--out DIR is needed"),
        (("--bridge", "--list"), "--only and --list are about --facts, --jobs and --corpus"),
        (("--facts",), "--out DIR is needed"),
        (("--bench",), "--out DIR is needed"),
        (("--facts", "--out", "x", "--limit", "0"), "--limit must be more than 0"),
        (
            ("--out", "x", "--limit", "jobs=soon"),
            "--limit must be SECONDS or PART=SECONDS, but got jobs=soon",
        ),
        (("--out", "x", "--limit", "moon=3"), "no such part; there are build, bridge, jobs, stress, facts"),
        (("--out", "x", "--total", "-1"), "--total must be more than 0"),
        (("--facts", "--out", "x", "--only", "nonsense"), "no such check: nonsense"),
        (("--facts", "--out", "x", "--only", "graph_trees"), "no such check: graph_trees"),
    ],
)
def test_misuse(arguments: tuple[str, ...], told: str) -> None:
    done = gpu_check(*arguments)
    assert done.returncode == 2
    assert told in done.stderr


def test_without_a_gpu_it_says_what_to_do(tmp_path: Path) -> None:
    done = gpu_check("--facts", "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert "CUDA" in done.stderr
    assert "nvidia-smi" in done.stderr
    assert not (tmp_path / "out").exists()


def test_it_says_what_it_waits_for_and_waits_no_longer_than_all_may_take(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("import time\ntime.sleep(60)\n")
    command = [sys.executable, str(SCRIPTS / "gpu_check.py"), "--out", str(tmp_path / "out"), "--total", "2"]
    begin = time.monotonic()
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.stdout.startswith("asking torch for its CUDA device, within 2 s\n")
    assert done.returncode == 2 and "took more than 2 s" in done.stderr
    assert time.monotonic() - begin < 30


@pytest.mark.parametrize("name", ["driver", "allocator", "preload", "throwing_allocator"])
def test_native_parts_compile_without_cuda(tmp_path: Path, name: str) -> None:
    libraries.Builds([name], tmp_path).wait((name,))
    assert libraries.report(name)["why"] is None


@pytest.mark.skipif(
    libraries.cuda_include() is None,
    reason="the bridge includes cuda.h, and no CUDA headers are installed here",
)
def test_the_bridge_is_sound_as_far_as_headers_tell(tmp_path: Path) -> None:
    command = libraries.command("bridge", tmp_path)
    checked = [
        *command,
        "-fsyntax-only",
        "-DC10_CUDA_NO_CMAKE_CONFIGURE_FILE",
    ]  # a CPU build has no such file
    done = subprocess.run(checked, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_preloaded_library_serves_cpu_tensors(tmp_path: Path) -> None:
    (fact,) = (one for one in checks_of(facts.MODULES) if one.name == "cpu_allocation_is_taken_over")
    (found,) = rows(tmp_path, fact)
    assert found.verdict == "true", (found.why, found.claims)


@pytest.mark.skipif(
    torch.version.cuda is not None, reason="is about a torch built without CUDA; this one has it"
)
def test_every_fact_ends_by_itself_where_there_is_no_cuda(tmp_path: Path) -> None:
    facts_of_streams = [one for one in checks_of(["gpu.facts.streams"]) if one.name.startswith("s")]
    found = rows(tmp_path, *facts_of_streams)
    assert [one.verdict for one in found] == ["not checked"] * len(found)
    assert all("Torch not compiled with CUDA" in one.why or "CUDA" in one.why for one in found)


def test_programs_that_fail_are_false_and_without_time_nothing_is_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    good, bad = (
        ("good", "it ends", ["-c", "print('ok')"], {}),
        ("bad", "it ends", ["-c", "raise SystemExit(7)"], {}),
    )
    monkeypatch.setattr(programs, "PROGRAMS", (good, bad))
    ended, failed = programs.run(time.monotonic() + 60)
    assert (ended.verdict, failed.verdict) == ("true", "false")
    assert "exit code 7" in next(iter(failed.claims))
    assert [row.why for row in programs.run(time.monotonic() + 0.5)] == ["no time was left"] * 2
    assert [row.why for row in programs.run(time.monotonic() + 60, "no shim")] == ["no shim"] * 2


def test_what_hangs_with_its_output_open_ends_in_time() -> None:
    begin = time.monotonic()
    row = programs.run_row(Row("x", "it ends"), ["bash", "-c", "sleep 60 & sleep 60"], {}, begin + 2)
    assert row.verdict == "not checked" and "no end within" in row.why
    assert time.monotonic() - begin < 20
