"""Each example, alone and beside another, prints what it prints under plain python, byte for byte."""

import json
from pathlib import Path

import pytest
from conftest import EXAMPLES, Run

NAMES = ("digits_cnn", "autoencoder", "char_transformer", "recurrent_lm")
OPTIONS = ("--steps", "8", "--batch-size", "16")


def command(name: str) -> str:
    return " ".join([str(EXAMPLES / f"{name}.py"), *OPTIONS])


def check(
    gpushare: Run, plain: Run, names: tuple[str, ...], folder: Path, *options: str
) -> dict[str, object]:
    done = gpushare(
        "run", *map(command, names), "--log-dir", folder / "logs", "--summary", folder / "s.json", *options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for name in names:
        expected = plain(EXAMPLES / f"{name}.py", *OPTIONS)
        assert expected.returncode == 0 and "step 7 loss" in expected.stdout
        assert (folder / "logs" / f"{name}.out").read_text() == expected.stdout
        assert (folder / "logs" / f"{name}.err").read_text() == expected.stderr
    summary: dict[str, object] = json.loads((folder / "s.json").read_text())
    return summary


@pytest.mark.parametrize("policy", ["auto", "unmanaged", "temporal", "greedy", "zico", "waterwave"])
def test_four_at_once(policy: str, gpushare: Run, plain: Run, tmp_path: Path) -> None:
    summary = check(gpushare, plain, NAMES, tmp_path, "--budget", "400MiB", "--policy", policy)
    assert summary["policy"] == policy
    jobs = summary["jobs"]
    assert isinstance(jobs, list)
    assert [j["iterations"] for j in jobs] == ([8] * 4)
    assert all(j["remaining_bytes"] == 0 for j in jobs)


def test_two_in_less_than_their_sum(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    pair = ("digits_cnn", "autoencoder")
    summary = check(gpushare, plain, pair, tmp_path, "--budget", "42MiB")
    assert summary["pool_peak_bytes"] <= summary["budget_bytes"] < summary["solo_peaks_sum_bytes"]  # type: ignore[operator]


def test_a_saved_profile_is_used_and_changes_nothing(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    words = command("digits_cnn").split()
    done = gpushare("profile", "--json", *words)
    assert done.returncode == 0, done.stderr
    profile = json.loads(done.stdout)
    assert profile["peak_held_bytes"] >= profile["peak_live_bytes"] > 0
    assert max(profile["curve"]["held_bytes"]) == profile["peak_held_bytes"]
    done = gpushare("run", command("digits_cnn"), "--log-dir", tmp_path / "logs")
    assert "digits_cnn starts with its saved profile" in done.stderr
    expected = plain(EXAMPLES / "digits_cnn.py", *OPTIONS)
    assert (tmp_path / "logs" / "digits_cnn.out").read_text() == expected.stdout
