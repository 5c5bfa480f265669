"""What a script sees of memory that it does not get."""

from pathlib import Path

from conftest import Run

# As accelerate's `find_executable_batch_size` and Lightning's batch size finder do.
HALVES = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(256, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 256))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batch, done = 16384, 0
while done < 4:
    try:
        loss = model(torch.ones(batch, 256)).pow(2).mean()
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        done += 1
    except RuntimeError as error:
        (text,) = error.args
        if "DefaultCPUAllocator: can't allocate memory" not in text:
            raise
        print("too large:", batch, "budget is 300.0 MiB" in text)
        batch //= 2
print(batch, loss.item())
"""


def test_a_script_that_looks_for_torchs_words_goes_on(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(HALVES)
    (tmp_path / "b.py").write_text(HALVES.replace("16384", "4096"))
    done = gpushare("run", "a.py", "--budget", "300MiB")
    assert done.returncode == 0, done.stderr
    lines = [line.removeprefix("a | ") for line in done.stdout.splitlines() if line.startswith("a | ")]
    assert lines[0] == "too large: 16384 True" and "too large: 8192 True" in lines
    assert lines[-1] == plain("b.py").stdout.strip()


SET_UP = """
import sys, torch
torch.manual_seed(int(sys.argv[1]))
data = torch.randn(16384, 256)  # 16 MiB
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
optimizer = torch.optim.Adam(model.parameters())
for step in range(6):
    loss = model(data[torch.randint(0, 16384, (2048,))]).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    print(step, loss.item())
"""


def test_more_jobs_than_their_set_ups_have_room_for(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    """Nothing is known of any, so all begin at once; what they take before their first iterations is more than there
    is. None is refused."""
    (tmp_path / "a.py").write_text(SET_UP)
    done = gpushare("run", *(f"a.py {n}" for n in range(8)), "--budget", "70MiB", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    for n in range(8):
        out = tmp_path / "logs" / ("a.out" if n == 0 else f"a-{n + 1}.out")
        assert out.read_text() == plain("a.py", str(n)).stdout
