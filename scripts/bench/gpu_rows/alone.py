"""One job: its time under gpushare over plain python's, and its memory over what torch's own allocator reserves."""

from .bench import Bench, held_bytes
from .row import NotMeasured, Row
from .running import Ran
from .timing import step_s

WHAT = "one job against plain python, and its memory at the peak against torch's own allocator"
MOST_OVER_PLAIN, MOST_OVER_LIVE = 1.01, 1.05
EXPANDABLE = {
    "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
    "PYTORCH_ALLOC_CONF": "expandable_segments:True",
}


def measure(bench: Bench, workload: str, row: Row) -> None:
    """Plain and shared runs alternate (A B B A); the least of the rounds counts."""
    settings = bench.settings
    job = bench.job(workload, settings.many)
    runs: dict[str, list[Ran]] = {"plain": [], "gpushare": []}
    for _ in range(settings.rounds):
        for name in ("plain", "gpushare", "gpushare", "plain"):
            plain = name == "plain"
            runs[name].append(
                bench.runner.python([job]) if plain else bench.runner.gpushare([job], settings.budget_bytes)
            )
            row.figures[f"{name}_step_s"] = min(step_s(ran.ends_s[0], settings.few) for ran in runs[name])
    row.figures["time_over_plain"] = over = row.figures["gpushare_step_s"] / row.figures["plain_step_s"]
    bench.target(row, f"at most {MOST_OVER_PLAIN} of plain python's time", over <= MOST_OVER_PLAIN)
    shared = runs["gpushare"][-1]
    bench.learn_solo(workload, shared, runs["plain"][-1])
    held, live = held_bytes(shared), shared.summary["jobs"][0]["live_peak_bytes"]
    row.figures |= {"held_bytes": held, "live_bytes": live, "held_over_live": held / live}
    bench.target(row, f"at most {MOST_OVER_LIVE} of what is live is held", held <= MOST_OVER_LIVE * live)
    native(bench, row, "reserved", runs["plain"][-1].native_bytes[0])
    row.part("expandable segments", lambda: expandable(bench, workload, row))


def expandable(bench: Bench, workload: str, row: Row) -> None:
    if not bench.on_gpu:
        raise NotMeasured("they are a setting of torch's CUDA allocator")
    ran = bench.runner.python([bench.job(workload, bench.settings.few)], extra=EXPANDABLE)
    native(bench, row, "reserved_expandable", ran.native_bytes[0])


def native(bench: Bench, row: Row, name: str, reserved: int) -> None:
    if not reserved:
        row.notes.append(f"{name}: torch's CUDA allocator was not used")
        return
    row.figures[f"{name}_bytes"] = reserved
    row.figures[f"held_over_{name}"] = over = row.figures["held_bytes"] / reserved
    bench.target(row, f"no more is held than is {name}", over <= 1)
