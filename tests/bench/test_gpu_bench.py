"""scripts/bench/gpu.py and its workloads, on the CPU at tiny sizes: that they run, not how fast."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parent.parent.parent / "scripts" / "bench"
TINY = {
    "resnet.py": "--width 4 --side 32",
    "gpt.py": "--width 16 --depth 1 --length 8",
    "gan.py": "--width 2 --latent 4",
    "bert.py": "--width 16 --depth 1 --heads 2 --length 8",
    "gnmt.py": "--width 8 --depth 3 --length 4",
    "nasnet.py": "--width 4 --depth 1 --side 16",
    "pointnet.py": "--width 4 --points 16",
}


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        timeout=200,
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


def test_every_workload_of_the_benchmark_is_tried() -> None:
    sys.path.append(str(BENCH))
    spec = importlib.util.spec_from_file_location("gpu_bench", BENCH / "gpu.py")  # `gpu` is that of the check
    assert spec and spec.loader
    bench = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = bench
    spec.loader.exec_module(bench)
    assert {options.split()[0] for options in bench.WORKLOADS.values()} == set(TINY)


def test_every_row_is_measured_or_says_why(tmp_path: Path) -> None:
    tiny = "--batch-size 16 --width 32 --points 512"
    rows = ["--alone", "pointnet", "bert", "--pairs", "pointnet+pointnet", "--budgets", "1.6"]
    command = [BENCH / "gpu.py", "--device", "cpu", *rows, "--steps", "4", "12", "--budget", 1 << 30]
    done = run(*command, "--sizes", tiny, "--name", tmp_path / "gpu")
    assert done.returncode == 0, done.stdout + done.stderr
    pointnet, bert, pair = json.loads((tmp_path / "gpu.json").read_text())["figures"]
    assert pointnet["time_over_plain"] and pointnet["held_bytes"] > 0 and not pointnet["why"]
    assert "unrecognized arguments: --points" in bert["why"]
    assert 0 < pair["pool_peak_at_1.6"] <= 1.6 and not pair["why"]
