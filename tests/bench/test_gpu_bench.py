"""scripts/bench/gpu.py and its workloads, on the CPU at tiny sizes: that they run, not how fast."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

sys.path.append(str(Path(__file__).parent.parent.parent / "scripts" / "bench"))
from gpu_rows.workloads import WORKLOADS

BENCH = Path(__file__).parent.parent.parent / "scripts" / "bench"
TINY = {
    "resnet.py": "--width 4 --side 32",
    "gpt.py": "--width 24 --depth 1 --length 8 --vocabulary 64",
    "gan.py": "--width 2 --latent 4",
    "bert.py": "--width 16 --depth 1 --heads 2 --length 8",
    "gnmt.py": "--width 8 --depth 3 --length 4",
    "nasnet.py": "--width 4 --depth 1 --side 16",
    "pointnet.py": "--width 4 --points 16",
    "rhn.py": "--width 8 --depth 2 --length 3",
    "cifar_resnet.py": "--width 2 --depth 1 --side 8",
    "tacotron.py": "--width 16 --length 5 --frames 4",
}


def run(*command: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        timeout=280,
        cwd=cwd,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


@pytest.mark.parametrize("script", TINY)
def test_a_workload_runs(script: str) -> None:
    options = "--device cpu --batch-size 2 --steps 2"
    done = run(BENCH / "workloads" / script, *f"{options} {TINY[script]}".split())
    assert done.returncode == 0, done.stderr
    assert [line.split()[:3] for line in done.stdout.splitlines()] == [
        ["step", str(n), "loss"] for n in (0, 1)
    ]


def loaded() -> ModuleType:
    """gpu.py under another name: `gpu` is that of the check."""
    spec = importlib.util.spec_from_file_location("gpu_bench", BENCH / "gpu.py")
    assert spec and spec.loader
    bench = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = bench
    spec.loader.exec_module(bench)
    return bench


def test_every_workload_of_the_benchmark_is_tried() -> None:
    assert {options.split()[0] for options in WORKLOADS.values()} == set(TINY)


def measured(folder: Path, *options: str, many: int = 32) -> dict[str, dict[str, Any]]:
    """The rows by their kind and name, from elsewhere than the tree."""
    tiny = ["--sizes", "--batch-size 8 --width 16 --points 256", "--steps", 4, many, "--budget", 1 << 30]
    done = run(BENCH / "gpu.py", "--device", "cpu", *tiny, *options, "--name", "made/gpu", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    made = folder / "made"
    assert (made / "gpu.md").read_text().strip() == done.stdout.strip()
    told = json.loads((made / "gpu.json").read_text())
    assert told["torch"] == torch.__version__ and {"gpu", "driver", "cuda"} <= set(told)
    rows = told["figures"]
    return {f"{row['kind']}: {row['name']}": row for row in rows}


def test_pairs_and_what_they_print_and_allocate(tmp_path: Path) -> None:
    pairs = ["--pairs", "pointnet+pointnet", "--budgets", "1.6", "--replays", "pointnet"]
    rows = measured(tmp_path, "--only", "allocation", "equal", "pair", *pairs)
    assert list(rows)[:2] == ["pair: pointnet+pointnet at 1.6", "equal: pointnet+pointnet equal"]
    pair, equal, allocations = rows.values()
    assert not pair["why"] and all(pair["claims"].values()), pair
    figures = pair["figures"]
    assert 0 < figures["pool_peak_over_larger_peak"] <= 1.6
    for way in ("", "processes_"):
        assert figures[f"{way}stp"] > 0 and figures[f"{way}antt"] > 0, pair
        assert figures[f"{way}stp"] * figures[f"{way}time_over_one_after_the_other"] == pytest.approx(1)
    assert figures["unmanaged_jobs_failed"] == 0 or any("unmanaged: " in note for note in pair["notes"])
    assert "processes_native_bytes" not in figures  # not known on a CPU
    assert "what the device leaves idle: only a GPU tells" in pair["notes"]
    commands = pair["commands"]
    started = [command.split()[0] for command in commands]
    assert started == ["gpushare", "python", "gpushare", "gpushare", "python"]
    assert "--policy unmanaged" in commands[3] and " & python " in commands[4]
    assert "scripts/bench/workloads/pointnet.py" in commands[0] and str(tmp_path) not in "".join(commands)
    assert not equal["why"] and equal["figures"]["lines"] == 64, equal
    assert equal["claims"] == {"pointnet prints the same": True, "pointnet-2 prints the same": True}
    assert not allocations["why"], allocations
    figures = allocations["figures"]
    assert sum(name.endswith("empty over_plain") for name in figures) == 9 + 1
    assert figures["512 empty gpushare_ns"] > 0 and figures["pointnet allocations"] > 50
    assert "torch.cuda.caching_allocator_alloc needs a GPU" in allocations["notes"]
    assert allocations["commands"][0] == commands[0]  # the run whose log it is


def test_jobs_alone(tmp_path: Path) -> None:
    pointnet, bert = measured(tmp_path, "--only", "alone", "--alone", "pointnet", "bert").values()
    assert not pointnet["why"] and pointnet["figures"]["time_over_plain"] > 0, pointnet
    assert pointnet["figures"]["held_bytes"] >= pointnet["figures"]["live_bytes"] > 0
    assert "reserved: torch's CUDA allocator was not used" in pointnet["notes"]
    assert any(note.startswith("expandable segments: ") for note in pointnet["notes"])
    assert "unrecognized arguments: --points" in bert["why"] and "bert.py" in bert["commands"][0]


def test_what_the_gil_costs(tmp_path: Path) -> None:
    (row,) = measured(tmp_path, "--only", "launch-bound", many=40).values()
    assert not row["why"] and row["figures"]["gil_cost"] > 0, row
    # On a loaded machine the one may end before the other is past its first steps, which the row says then.
    apart = any(
        note.startswith("unmanaged: ") and "did not run side by side" in note for note in row["notes"]
    )
    assert row["figures"].get("unmanaged_gil_cost", 0) > 0 or apart, row


def test_the_largest_batch(tmp_path: Path) -> None:
    search = ["--batch-budget", str(48 << 20), "--batch-guess", "12", "--batch-grain", "1"]
    (row,) = measured(tmp_path, "--only", "batch", "--batches", "pointnet", *search, many=128).values()
    assert not row["why"], row
    figures = row["figures"]
    assert 0 < figures["largest_together"] <= figures["largest_alone"] and 0 < figures["bound"] < 1
    assert figures["pool_peak_over_larger_peak"] > 0, row
    assert figures.get("stp", 0) > 0 or any("did not run side by side" in note for note in row["notes"]), row
    assert any("of the bound" in claim for claim in row["claims"])


def test_rows_that_have_no_time_left_say_so(tmp_path: Path) -> None:
    rows = measured(tmp_path, "--limit", "1")
    kinds = [name.split(":")[0] for name in rows]
    assert list(dict.fromkeys(kinds)) == list(loaded().plan.KINDS)
    assert {row["why"] for row in rows.values()} == {"no time left"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--pairs", "bert"], "a pair is WORKLOAD+WORKLOAD, but got bert"),
        (["--pairs", "bert+moon"], "no such workload: moon"),
        (["--batches", "moon"], "no such workload: moon"),
        (["--steps", "2", "9"], "FEW of at least 3"),
        (["--limit", "0"], "--limit must be more than 0"),
    ],
)
def test_misuse(options: list[str], said: str) -> None:
    done = run(BENCH / "gpu.py", *options)
    assert done.returncode == 2 and said in done.stderr
