"""Each rule of the shim that keeps memory safe, removed: one of the shim's tests must fail."""

import shutil
import subprocess
from pathlib import Path

import pytest

SHIM = Path(__file__).parent.parent.parent / "shim"
MUTANTS = [
    ("safety", "safety.cpp", "if (open[i].claim - open[i].held > available) return false;", ""),
    ("safety", "safety.cpp", "if (a_gives != b_gives) return a_gives;", ""),
    ("safety", "safety.cpp", "a.claim - a.held < b.claim - b.held", "a.claim < b.claim"),
    ("safety", "safety.cpp", "a.claim - a.residue > b.claim - b.residue", "a.claim > b.claim"),
    ("pool", "pool.cpp", "device_->make_wait(stream, other, event);", ""),
    ("pool", "pool.cpp", "device_->finish(p.freed_on, p.freed_at);", ""),
    ("governor", "judge.cpp", " && leaves_room(a, n)", ""),
    (
        "governor",
        "judge.cpp",
        "if (others_measured(a) && waited_ns < kMeasureNs) return Verdict::kWait;",
        "",
    ),
    ("governor", "governor.cpp", "  resolve_wedge();\n}", "}"),
    ("governor", "waits.cpp", ".no_wait = no_wait, ", ""),
    ("governor", "doors.cpp", "if (yields_to_earlier(a, self)) return false;", ""),
    ("governor", "doors.cpp", "!others_live(a) || fits_beside_residues(a, 0)", "true"),
    ("governor", "doors.cpp", " || !has_a_place(*w)) continue", ") continue"),
    ("governor", "doors.cpp", "if (p.valid && o.recorder.ordinal() < p.ordinal) return false;", ""),
    ("governor", "doors.cpp", "if (parked_for_ && parked_for_ != a.id) return false;", ""),
    ("governor", "doors.cpp", "!a.trusted()) return false;\n  for", "false) return false;\n  for"),
    ("copying", "copying_out.cpp", " &&\n         a.threads == a.waiting_threads", ""),
    ("copying", "copying_out.cpp", "parked_changed_.wait(again, [&] { return !a.saved; });", ""),
    ("copying", "copying_out.cpp", "  held_ -= n;\n  last_free_ns_", "  last_free_ns_"),
    (
        "copying",
        "pool.cpp",
        "device_->forget(address(p), page_bytes_);\n      page.use = Use::kReserved;",
        "",
    ),
    ("copying", "doors.cpp", "if (accounts_[w->id].saved && has_a_place(*w)) return false;", ";"),
    ("governor", "budget.cpp", "wanted_budget_ < budget_ && !cut_fits()", "false"),
    ("governor", "doors.cpp", "budget = planned_budget()", "budget = budget_"),
    ("governor", "budget.cpp", "  pool_.set_budget(budget_);\n", ""),
    ("heap", "regions.cpp", "if (persistent && others) place.cost += kPinnedPage;", ""),
    ("heap", "regions.cpp", "    place.cost += kNewPage;\n", ""),
    ("heap", "kinds.cpp", "&& table->made[ordinal].bytes == bytes", ""),
    ("heap", "trace.cpp", "made_[place[it->second]].persistent = false;", ""),
    ("pool", "pool.cpp", "event = std::max(event, page.freed_at);", "if (!event) event = page.freed_at;"),
]
# Each as a program of its own; the governor needs all but the heaps. The slowest takes 13 s.
GOVERNOR = [
    "governor",
    "judge",
    "budget",
    "waits",
    "copying_out",
    "doors",
    "safety",
    "pool",
    "curve",
    "trace",
    "kinds",
    "allocation_log",
    "telemetry",
]
GOVERNOR += ["gil", "devices/host"]
SOURCES = {"governor": GOVERNOR, "copying": GOVERNOR, "heap": [*GOVERNOR, "heap", "slabs", "regions"]}
LONGEST_S = 40


@pytest.mark.parametrize(("test", "file", "rule", "without"), MUTANTS)
def test_the_rule_is_needed(test: str, file: str, rule: str, without: str, tmp_path: Path) -> None:
    shutil.copytree(SHIM, tmp_path / "shim")
    source = tmp_path / "shim" / "src" / file
    text = source.read_text()
    assert text.count(rule) == 1, "the rule is written otherwise now: mend this test"
    source.write_text(text.replace(rule, without))
    main = tmp_path / "shim" / "tests" / f"{test}_test.cpp"
    program = tmp_path / "program"
    parts = [source.parent / f"{part}.cpp" for part in SOURCES.get(test, [test])]
    subprocess.run(["g++", "-std=c++20", "-O1", "-pthread", "-o", program, main, *parts], check=True)
    try:
        done = subprocess.run([program], capture_output=True, timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        return  # nobody wakes any more, which is a failure as well
    assert done.returncode != 0
