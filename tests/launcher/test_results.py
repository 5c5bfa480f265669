from gpushare.launcher.results import JobResult, exit_code


def of(*statuses: str, ended_by: int | None = None, host_died: bool = False) -> int:
    jobs = [JobResult(str(n), "", status) for n, status in enumerate(statuses)]
    return exit_code(jobs, ended_by=ended_by, host_died=host_died)


def test_the_worst_counts() -> None:
    assert of("ok", "profiled") == 0
    assert of("ok", "failed") == 1
    assert of("failed", "refused") == 3
    assert of("refused", "lost", host_died=True) == 4
    assert of("lost", ended_by=2, host_died=True) == 130
    assert of("ok", "interrupted", ended_by=15) == 143


def test_what_never_ran_did_not_succeed() -> None:
    assert of("ok", "waiting") == 1
