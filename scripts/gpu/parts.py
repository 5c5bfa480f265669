"""The parts of the check, in the order of their value, and the time that each may take."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from . import bench, build, corpus, facts, jobs, programs, runner, stress, suite
from .checks import checks_of
from .libraries import Builds
from .runner import Row


@dataclass
class Given:
    """What the command was told: where results are written, and which rows of some parts alone are checked."""

    out: Path
    only: tuple[str, ...] = ()

    def wants(self, name: str) -> bool:
        return not self.only or name in self.only


@dataclass(frozen=True)
class Part:
    """`start` gives how many rows there will be, and the rows: until a deadline, or not checked for a reason.

    It is given the deadline too: to count the rows may take a process.
    """

    name: str
    title: str
    help: str
    limit_s: float
    start: Callable[[Given, float], tuple[int, Callable[[float, str], Iterator[Row]]]]
    builds: bool = True  # it needs the shim
    listed: Callable[[], list[tuple[str, str]]] = list  # rows that can be chosen, with what they state


def _facts(given: Given, _: float) -> tuple[int, Callable[[float, str], Iterator[Row]]]:
    checks = [one for one in checks_of(facts.MODULES) if given.wants(one.name)]
    needed = sorted({library for check in checks for library in check.libraries})

    def rows(deadline: float, why: str) -> Iterator[Row]:
        with tempfile.TemporaryDirectory() as folder:
            builds = Builds(needed, Path(folder))
            try:
                yield from runner.run(checks, builds, deadline)
            finally:
                builds.abandon()

    return len(checks), rows


def _listed_facts() -> list[tuple[str, str]]:
    return [(check.name, f"{check.statement} ({check.rank})") for check in checks_of(facts.MODULES)]


def _jobs(given: Given, _: float) -> tuple[int, Callable[[float, str], Iterator[Row]]]:
    cases = tuple(case for case in jobs.CASES if given.wants(case.name))
    return len(cases), lambda deadline, why: jobs.run(deadline, why, cases)


def _corpus(given: Given, _: float) -> tuple[int, Callable[[float, str], Iterator[Row]]]:
    """A script beside the one that is drawn for it."""
    pairs = [pair for pair in corpus.pairs() if any(map(given.wants, pair))]
    return 2 * len(pairs), lambda deadline, why: corpus.run(deadline, why, pairs)


def _tests(_: Given, deadline: float) -> tuple[int, Callable[[float, str], Iterator[Row]]]:
    collected = suite.collected(deadline)
    return len(collected.names), lambda until, why: suite.run(collected, until, why)


def _bench(given: Given, deadline: float) -> tuple[int, Callable[[float, str], Iterator[Row]]]:
    benchmark = bench.Benchmark(given.out, until=deadline)
    return len(benchmark.names), benchmark.run


BUILD = Part(
    "build",
    "What the check needs, built here",
    "",
    110,
    lambda *_: (build.COUNT, lambda deadline, _: build.run(deadline)),
    builds=False,
)
# First, from small to large, whether the product works at all: where it does not, nothing else is worth as much, and a
# machine may be there for minutes only. Facts say why it does not. What a part does not take goes to those behind it,
# and at last to the benchmark, which has more rows than time in any case.
PARTS = (
    Part(
        "bridge",
        "The allocator on this GPU",
        "computing through the shim's allocator",
        40,
        lambda *_: (programs.COUNT, programs.run),
    ),
    Part(
        "jobs",
        "Jobs on this GPU, by the command",
        "scripts by `gpushare run`, and in plain python",
        100,
        _jobs,
        listed=lambda: [(case.name, case.statement) for case in jobs.CASES],
    ),
    Part(
        "stress",
        "Streams of several jobs at once",
        "no byte is seen by two owners, on real streams",
        40,
        lambda *_: (stress.COUNT, stress.run),
    ),
    Part(
        "facts",
        "What is so on this GPU",
        "statements about CUDA and torch",
        110,
        _facts,
        builds=False,
        listed=_listed_facts,
    ),
    Part(
        "tests",
        "The tests that need a GPU",
        "those marked `gpu`, by pytest",
        90,
        _tests,
    ),
    Part(
        "corpus",
        "The corpus of scripts on this GPU",
        "tests/scripts, each beside a different one, against plain python",
        75,
        _corpus,
        listed=lambda: [(name, "") for name in corpus.names()],
    ),
    Part("bench", "The benchmark on this GPU", "scripts/bench/gpu.py; the last part", 90, _bench),
)
