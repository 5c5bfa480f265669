"""Run as `tensors.py` is, with the compiled `calls.cpp` as the second argument: inductor's graph trees over the
allocator. The functions that are recorded only make tensors, since the fake driver computes nothing: where they lie is
what is looked at. Prints `ok` last.
"""

import ctypes
import gc
import importlib
import itertools
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from job_threads import MIB, Job, context, fake, torch

from gpushare.native import shim, usage

calls = ctypes.CDLL(sys.argv[2])
Function = Callable[[list[Any]], list[Any]]
OUTPUTS: dict[Function, int] = {}  # how many it has


def made(megabytes: int) -> Any:
    return torch.empty(megabytes * MIB, dtype=torch.uint8, device="cuda")


def function(*sizes: int, freed: tuple[int, ...] = ()) -> Function:
    """Makes outputs of so many MiB, and others between them that it frees."""

    def model(inputs: list[Any]) -> list[Any]:
        inputs.clear()
        passing = [made(size) for size in freed]
        outputs = [made(size) for size in sizes]
        passing.clear()
        small = torch.empty(100, device="cuda")
        return [*outputs, small]

    OUTPUTS[model] = len(sizes) + 1
    return model


class Trees:
    """What torch.compile does with the graphs of a job: each function is warmed up, recorded and replayed."""

    def __init__(self) -> None:
        self.trees: Any = importlib.import_module("torch._inductor.cudagraph_trees")
        self.guard: Any = importlib.import_module("torch._dynamo.mutation_guard")
        self._graphs: dict[Function, Any] = {}

    def iteration(self) -> None:
        self.guard.GenerationTracker.generation += 1

    def __call__(self, model: Function, *inputs: Any, static: int = 0) -> list[Any]:
        """`static` of the inputs stay where they are, as parameters do."""
        given, outputs = list(inputs), OUTPUTS[model]
        if model not in self._graphs:
            self._graphs[model] = self.trees.cudagraphify_impl(
                model,
                given,
                range(static),
                device_index=0,
                is_backward=False,
                is_inference=True,
                stack_traces=[None] * outputs,
            )
        return list(self._graphs[model](given))

    def reset(self, job: context.JobContext) -> None:
        """As torch.compiler.reset does; all of their memory leaves."""
        self.trees.reset_cudagraph_trees()
        gc.collect()
        assert not [p for p in usage.pieces(job.account) if p.arena]

    @property
    def manager(self) -> Any:
        return self.trees.get_container(0).tree_manager


def apart(tensors: list[Any]) -> None:
    spans = sorted((t.data_ptr(), t.data_ptr() + t.untyped_storage().nbytes()) for t in tensors)
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(spans)), spans


def live_in_pool(trees: Trees, tensors: list[Any]) -> None:
    """Just these are in use in the pool of the job's trees, as torch's own check asks."""
    pool = trees.manager.cuda_graphs_thread_pool
    expected = {t.data_ptr() for t in tensors}
    assert torch._C._cuda_checkPoolLiveAllocations(0, pool, expected), expected


def a_tree_of_graphs(job: context.JobContext) -> None:
    trees = Trees()
    first, second, other = (
        function(5, 40, freed=(7,)),
        function(3, freed=(33, 1)),
        function(6, 34, freed=(2,)),
    )
    weight = made(4)
    where: list[list[int]] = []
    for _ in range(4):  # warm-up, recording, two replays
        trees.iteration()
        a = trees(first, weight, static=1)
        b = trees(second, a[0], static=0)
        apart([weight, *a, *b])
        where.append([t.data_ptr() for t in (*a, *b)])
        live = [*a, *b]
    assert where[1] == where[2] == where[3], where
    assert trees.manager.path_state.name == "EXECUTION"
    del a, b, live
    for turn in range(4):  # behind the replayed one another is warmed up, recorded, replayed
        trees.iteration()
        a = trees(first, weight, static=1)
        assert [t.data_ptr() for t in a] == where[1][:3]
        c = trees(other, a[1])
        apart([weight, *a, *c])
        if trees.manager.path_state.name != "EXECUTION":
            live_in_pool(trees, [*a, *c])
        outside = made(10)
        apart([weight, *a, *c, outside])
        del outside, a, c
        assert trees.manager.debug_checkpointing_counter == min(turn + 1, 2)
    trees.iteration()
    a = trees(first, weight, static=1)
    b = trees(second, a[0])
    assert [t.data_ptr() for t in (*a, *b)] == where[1], "the first tree is as it was"
    del b
    held = usage.memory(job.account).held_bytes
    for _ in range(5):
        trees.iteration()
        a = trees(first, weight, static=1)
        trees(second, a[0])
    assert usage.memory(job.account).held_bytes == held, "replays take nothing"


def outputs_that_live_on(job: context.JobContext) -> None:
    """One of them is freed by the script after the state was set back: its deleter came back with it."""
    trees = Trees()
    first, second, other = function(5, 6), function(3), function(4)
    for _ in range(3):
        trees.iteration()
        a = trees(first)
        trees(second, a[0])
    del a
    trees.iteration()
    kept = trees(first)
    trees(other, kept[1])  # the state is set back
    live = usage.memory(job.account).live_bytes
    del kept[0]
    assert usage.memory(job.account).live_bytes == live - 5 * MIB


def steps_of_another(first: Job, second: Job) -> None:
    """What one job begins is no new iteration for the other, whose outputs would be gone."""
    seen: dict[str, Any] = {}
    functions = function(5), function(3)

    def begins(_: context.JobContext) -> None:
        trees = seen.setdefault("trees", Trees())
        trees.iteration()
        seen["outputs"] = trees(functions[0])

    def another(job: context.JobContext) -> None:
        trees = Trees()
        trees.iteration()
        torch.compiler.cudagraph_mark_step_begin()
        trees(function(2))
        trees.reset(job)

    def goes_on(_: context.JobContext) -> None:
        trees, outputs = seen["trees"], seen["outputs"]
        before = [t.data_ptr() for t in outputs]
        trees(functions[1], outputs[0])
        assert [t.data_ptr() for t in outputs] == before, "the outputs are still there"
        assert trees.trees.MarkStepBox.mark_step_counter == 0
        outputs.clear()

    for _ in range(4):  # warm-up, recording, replays
        first.does(begins)
        second.does(another)
        first.does(goes_on)


def at_once(jobs: list[Job]) -> None:
    """Each in its own thread, through warm-ups and recordings: none waits for another's lock, or frees its memory."""
    failed: list[BaseException] = []
    together = threading.Barrier(len(jobs))

    def body(job: context.JobContext) -> None:
        Trees().reset(job)
        together.wait()
        for _ in range(3):
            a_tree_of_graphs(job)
            Trees().reset(job)

    def run(job: Job) -> None:
        try:
            job.does(body)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def records_while_another_does(first: Job, second: Job) -> None:
    def nested(_: context.JobContext) -> None:
        trees = Trees()

        def model(inputs: list[Any]) -> list[Any]:
            inputs.clear()
            second.does(lambda job: trees_of_second(job))
            return [made(2)]

        OUTPUTS[model] = 1

        for _ in range(3):
            trees.iteration()
            trees(model)

    def trees_of_second(_: context.JobContext) -> None:
        trees = Trees()
        trees.iteration()
        trees(function(3))

    first.does(nested)


jobs = [Job(), Job(), Job()]
jobs[0].does(a_tree_of_graphs)
jobs[1].does(outputs_that_live_on)
steps_of_another(jobs[0], jobs[1])
records_while_another_does(jobs[0], jobs[1])
at_once(jobs[:2])
for job in jobs:
    job.does(None)
    assert usage.memory(job.account).live_bytes == 0, usage.memory(job.account)
torch.cuda.synchronize()
shim.check()
fake.fake_cuda_run_all()
print("ok", flush=True)
os._exit(0)  # as in tensors.py
