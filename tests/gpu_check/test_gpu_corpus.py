"""The corpus as a part of the GPU check: its machinery on the CPU, where nothing of a GPU is said."""

import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

# Before scripts/bench, which has a gpu.py.
sys.path.insert(0, str(Path(__file__).parent.parent.parent / "scripts"))
from gpu import corpus, jobs, programs
from gpu.corpus import Machine
from gpu.runner import Row

UNDER_GPUSHARE = "'gpushare.host' in open('/proc/self/cmdline').read()"


@pytest.fixture(autouse=True)
def fixed(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """One thread; the package is the installed one, neither PYTHONPATH nor the directory lead to the tree's."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("MKL_CBWR", "COMPATIBLE")
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.setattr(programs, "SITE", elsewhere)
    monkeypatch.chdir(elsewhere)


def rows(folder: Path, pair: tuple[str, str], limit_s: float = 200) -> list[Row]:
    machine = Machine("cpu", time.monotonic() + limit_s, folder)
    return list(corpus.run_pairs([pair], machine))


def scripts(monkeypatch: pytest.MonkeyPatch, folder: Path, **texts: str) -> None:
    folder.mkdir()
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.setattr(corpus, "FOLDER", folder)


def test_two_of_the_corpus_are_equal_to_plain_python(tmp_path: Path) -> None:
    computing, exiting = rows(tmp_path, ("manual_sgd", "exit_message"))
    assert computing.verdict == exiting.verdict == "true", (computing, exiting)
    assert computing.claims["it has memory on the device"] and computing.figures["held_peak_bytes"] > 0
    assert "exit code 1" in exiting.claims and "held_peak_bytes" not in exiting.figures
    assert "stays on the CPU" in exiting.statement and "stays on the CPU" not in computing.statement


def test_what_differs_is_told_and_what_plain_python_changes_is_not_compared(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    where = f"open('where', 'w').write(str({UNDER_GPUSHARE}))\nprint('same')\n"
    clock = "import time\nprint(time.monotonic_ns())\n"
    scripts(monkeypatch, tmp_path / "scripts", where=where, clock=clock)
    different, unsteady = rows(tmp_path, ("where", "clock"))
    assert different.verdict == "false"
    assert [what for what, holds in different.claims.items() if not holds] == ["files are the same['where']"]
    assert unsteady.verdict == "not checked" and "plain python itself does not do the same" in unsteady.why


def test_a_script_that_leaves_the_device_alone_is_not_one_that_computes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    scripts(monkeypatch, tmp_path / "scripts", lazy="print('DEVICE')\n", other="print(1)\n")
    lazy, other = rows(tmp_path, ("lazy", "other"))
    assert (lazy.verdict, other.verdict) == ("false", "true")
    assert not lazy.claims["it has memory on the device"]


def test_exit_codes_are_compared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    scripts(
        monkeypatch,
        tmp_path / "scripts",
        a=f"raise SystemExit(3 + ({UNDER_GPUSHARE}))\n",
        b="raise SystemExit(5)\n",
    )
    changed, same = rows(tmp_path, ("a", "b"))
    assert (changed.verdict, same.verdict) == ("false", "true")
    assert [what.partition(";")[0] for what, holds in changed.claims.items() if not holds] == [
        "exit code 3, but it is 4"
    ]


def test_who_fails_is_told_with_its_traceback_and_not_looked_at_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fails = (
        f"import time\nprint(time.monotonic_ns())\nif {UNDER_GPUSHARE}: raise ValueError('the moon fell')\n"
    )
    scripts(monkeypatch, tmp_path / "scripts", fails=fails, other="print(1)\n")
    failed, other = rows(tmp_path, ("fails", "other"))
    assert (failed.verdict, other.verdict) == ("false", "true"), failed
    assert any("exit code 0, but it is 1" in what and "the moon fell" in what for what in failed.claims)
    assert "Traceback" in failed.log and "--- fails.err" in failed.log


def test_what_hangs_is_false_and_says_where(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hangs = (
        f"import time\ndef waits_for_ever():\n    if {UNDER_GPUSHARE}: time.sleep(100)\nwaits_for_ever()\n"
    )
    scripts(monkeypatch, tmp_path / "scripts", hangs=hangs, ends="print(1)\n")
    monkeypatch.setattr(corpus, "LIMIT_S", 15.0)
    for row in rows(tmp_path, ("hangs", "ends")):
        (claim,) = row.claims
        assert row.verdict == "false" and claim.startswith("gpushare ends within 15 s; its last words:")
        assert "in waits_for_ever" in row.log


def test_rows_are_told_as_they_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told = threading.Event()

    def run_pair(pair: tuple[str, str], *_: Any) -> None:
        assert pair[0] != "a" or told.wait(30)

    scripts(monkeypatch, tmp_path / "scripts", **dict.fromkeys("abcd", "print(1)\n"))
    monkeypatch.setattr(corpus, "_run_pair", run_pair)
    monkeypatch.setattr(corpus, "at_once", lambda: 2)
    found = corpus.run_pairs([("a", "b"), ("c", "d")], Machine("cpu", time.monotonic() + 60, tmp_path))
    assert [next(found).name, next(found).name] == ["c", "d"]
    told.set()
    assert [next(found).name, next(found).name] == ["a", "b"]


def test_without_time_nothing_is_checked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert [row.why for row in rows(tmp_path, ("manual_sgd", "exit_message"), 0.5)] == [jobs.NO_TIME] * 2
    scripts(monkeypatch, tmp_path / "scripts", hangs="import time\ntime.sleep(60)\n", ends="print(1)\n")
    monkeypatch.setattr(corpus, "LIMIT_S", 2.0)
    hangs, ends = rows(tmp_path, ("hangs", "ends"))
    assert "did not end it within 2 s" in hangs.why and "what it runs beside" in ends.why


def test_each_script_is_in_a_pair_and_those_that_compute_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(corpus.SEED, "7")
    pairs = corpus.pairs()
    assert {name for pair in pairs for name in pair} == {path.stem for path in corpus.FOLDER.glob("*.py")}
    assert all(one != other for one, other in pairs)
    kinds = [corpus.computes(one) for one, _ in pairs]
    assert kinds == sorted(kinds, reverse=True) and sum(kinds) >= 20
    assert corpus.pairs() == pairs
