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
    ("pool", "pool.cpp", "event = std::max(event, page.freed_at);", "if (!event) event = page.freed_at;"),
]


@pytest.mark.parametrize(("test", "file", "rule", "without"), MUTANTS)
def test_the_rule_is_needed(test: str, file: str, rule: str, without: str, tmp_path: Path) -> None:
    shutil.copytree(SHIM, tmp_path / "shim")
    source = tmp_path / "shim" / "src" / file
    text = source.read_text()
    assert text.count(rule) == 1, "the rule is written otherwise now: mend this test"
    source.write_text(text.replace(rule, without))
    main = tmp_path / "shim" / "tests" / f"{test}_test.cpp"
    program = tmp_path / "program"
    build = ["g++", "-std=c++20", "-O1", "-o", program, main, source.with_name(f"{test}.cpp")]
    subprocess.run(build, check=True)
    done = subprocess.run([program], capture_output=True, timeout=120)
    assert done.returncode != 0
