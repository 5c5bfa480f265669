"""What the compiler's graph trees keep for the process."""

import io
import types
from dataclasses import dataclass

from gpushare.framework import cuda_graph_trees
from gpushare.isolation import context


@dataclass(slots=True)
class Tracker:
    """As torch has one from 2.15 on; before, it was the class."""

    generation: int = 0
    others: int = 0


def test_an_object_of_which_each_job_has_an_attribute() -> None:
    tracker = Tracker(3, 4)
    cuda_graph_trees.give_attribute_per_job(tracker, "generation")
    streams = io.StringIO(), io.StringIO(), io.StringIO()
    jobs = [
        context.JobContext(name, n, [], [], types.ModuleType(name), *streams, {}, print)
        for n, name in enumerate(("first", "second"), 1)
    ]
    seen = []
    try:
        for job in jobs:
            context.bind(job)
            tracker.generation += 1
            tracker.others += 1
            seen.append((tracker.generation, tracker.others))
    finally:
        context.bind(None)
    assert seen == [(4, 5), (4, 6)]
    assert tracker.generation == 3 and isinstance(tracker, Tracker)
