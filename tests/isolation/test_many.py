"""Four and eight jobs at once: each as alone, nobody's memory left behind."""

import json
from pathlib import Path

import pytest
from conftest import EXAMPLES, Run

COMMANDS = {
    "digits_cnn": "--steps 5 --batch-size 16",
    "autoencoder": "--steps 6 --batch-size 16",
    "char_transformer": "--steps 4 --batch-size 8",
    "recurrent_lm": "--steps 4 --batch-size 8",
}


@pytest.mark.parametrize("copies", [1, 2])
def test_many_at_once(copies: int, gpushare: Run, plain: Run, tmp_path: Path) -> None:
    jobs = [f"{EXAMPLES / name}.py {options}" for name, options in COMMANDS.items()]
    done = gpushare("run", *jobs * copies, "--budget", "300MiB", "--log-dir", "logs", "--summary", "s.json")
    assert done.returncode == 0, done.stdout + done.stderr
    for name, options in COMMANDS.items():
        expected = plain(EXAMPLES / f"{name}.py", *options.split()).stdout
        for copy in range(copies):
            log = f"{name}-{copy + 1}" if copy else name
            assert (tmp_path / "logs" / f"{log}.out").read_text() == expected
    summary = json.loads((tmp_path / "s.json").read_text())
    assert summary["pool_peak_bytes"] <= summary["budget_bytes"]
    assert [j["remaining_bytes"] for j in summary["jobs"]] == [0] * 4 * copies
