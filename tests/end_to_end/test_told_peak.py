"""What a run tells of its memory is what it needs."""

import json
from pathlib import Path

from conftest import Run

MIB = 1 << 20

# Batches of many shapes, so that blocks of all sizes come to lie beside each other; some of 6 MiB and more, which would
# have pages of their own in small regions.
SCRIPT = """
import random, torch
torch.manual_seed(0); random.seed(0)
layer = torch.nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, dropout=0.1)
model = torch.nn.Sequential(torch.nn.Embedding(50, 128), layer, torch.nn.Linear(128, 50))
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
for step in range(12):
    for half in range(2):
        x = torch.randint(0, 50, (random.randint(2, 8), random.randint(8, 256)))
        loss = torch.nn.functional.cross_entropy(model(x).flatten(0, 1), x.roll(1, 1).flatten()) / 2
        loss.backward()
    optimizer.step(); optimizer.zero_grad()
    print(step, loss.item())
"""


def test_a_budget_of_the_peak_that_was_told_is_enough(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(SCRIPT)
    ample = gpushare("run", "a.py", "--budget", "1GiB", "--no-profile", "--summary", "s.json")
    assert ample.returncode == 0, ample.stderr
    peak = json.loads((tmp_path / "s.json").read_text())["pool_peak_bytes"]
    assert peak < 200 * MIB
    tight = gpushare("run", "a.py", "--budget", str(peak), "--no-profile")
    assert tight.returncode == 0, tight.stderr
    of_the_script = [line for line in ample.stdout.splitlines() if line.startswith("a | ")]
    assert len(of_the_script) == 12
    assert of_the_script == [line for line in tight.stdout.splitlines() if line.startswith("a | ")]
    assert gpushare("run", "a.py", "--budget", str(peak - 2 * MIB), "--no-profile").returncode == 3
