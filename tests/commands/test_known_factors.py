"""What a plan takes jobs to do to each other's pace, by what is kept of runs and profiles."""

from dataclasses import replace
from pathlib import Path

import pytest

from gpushare.commands.contention import contention_of, cores_here, known_factors, threads_of
from gpushare.jobs import JobSpec, parse_job
from gpushare.profiles import Profile, pairs, store

PLAIN = Profile("x", "2", "cpu", 2 << 20, 0, 0, 0, 2 << 20, 1, 0, 0.1, (2 << 20,), (0.0,), cores_busy=0.5)
SHARES = replace(PLAIN, gil_share=0.2, sensitivity=0.5, pressure=0.1)  # two feel 1.09 of each other
Jobs = dict[str, JobSpec]


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Jobs:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in "abcdef":
        (tmp_path / f"{name}.py").write_text(f"# {name}")
    return {name: parse_job(str(tmp_path / f"{name}.py")) for name in "abcdef"}


def have_run(jobs: Jobs, pair: str, factor: float, profile: Profile = SHARES) -> None:
    keys = [str(store.key_for(jobs[name], profile.device)) for name in pair]
    for key in keys:
        store.save(key, profile)
    pairs.learn(keys[0], keys[1], factor)


def known(
    jobs: Jobs, pair: str, profile: Profile = SHARES, given: float | None = None, cores: float | None = None
) -> tuple[object, ...]:
    profiles = [replace(profile, key=store.key_for(jobs[name], profile.device)) for name in pair]
    cores = cores or cores_here()
    (found,) = known_factors(profiles, [threads_of(p, cores) for p in profiles], cores, given)
    factor = pytest.approx(found.factor)
    contention = contention_of(2, given, [found])
    assert contention.factors[0, 1] + contention.waits[0, 1] == factor == found.factor_of_second
    assert contention.factors[0, 1] >= 1
    return found.source, factor, found.runs, found.others


def test_what_both_have_shown_comes_before_what_others_have(jobs: Jobs) -> None:
    have_run(jobs, "ab", 1.4)
    have_run(jobs, "ac", 1.9)
    assert known(jobs, "ab") == ("learned", 1.4, 1, 0)
    assert known(jobs, "ab", given=2.5) == ("given", 2.5, 0, 0)


def test_profiles_alone_where_nothing_has_run(jobs: Jobs) -> None:
    assert known(jobs, "ab") == ("measured", 1.09, 0, 0)
    assert known(jobs, "ab", PLAIN) == ("default", 1.0, 0, 0)


def test_others_add_the_middle_of_what_their_profiles_do_not_tell(jobs: Jobs) -> None:
    for pair, rest in (("ab", 0.1), ("ac", 0.16), ("bc", 3.0)):
        have_run(jobs, pair, 1.09 + rest)
    assert known(jobs, "de") == ("measured", 1.25, 0, 3)
    assert known(jobs, "ad", replace(SHARES, gil_share=0.0)) == ("measured", 1.21, 0, 3)
    assert known(jobs, "de", PLAIN) == ("others", 1.25, 0, 3)


def test_less_than_was_foretold_takes_away_no_more_than_the_bandwidth(jobs: Jobs) -> None:
    hungry = replace(SHARES, sensitivity=2.0, pressure=1.0)
    have_run(jobs, "ab", 1.5, hungry)  # foretold were 3.04
    assert known(jobs, "cd", replace(hungry, pressure=1.2)) == ("measured", 1.9, 0, 1)
    assert known(jobs, "cd") == ("measured", 1.04, 0, 1)  # the GIL is left


def test_others_must_be_alike(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    have_run(jobs, "ab", 1.3, replace(SHARES, cores_busy=2.0))  # want more cores than there are
    have_run(jobs, "ac", 1.4, replace(SHARES, device="cuda NVIDIA H200"))
    assert known(jobs, "de") == ("measured", 1.09, 0, 0)
    assert known(jobs, "de", replace(SHARES, cores_busy=2.0)) == ("measured", 1.3, 0, 1)


def test_a_pair_whose_profiles_are_gone_tells_nothing_of_others(jobs: Jobs) -> None:
    pairs.learn("gone", "gone too", 1.7)
    assert known(jobs, "de") == ("measured", 1.09, 0, 0)
    have_run(jobs, "ab", 1.3, PLAIN)  # nothing was foretold of it
    assert known(jobs, "de") == ("measured", 1.09, 0, 0)
    assert known(jobs, "de", PLAIN) == ("others", 1.3, 0, 1)


def test_a_profile_that_does_not_say_what_was_measured_has_learned_nothing(jobs: Jobs) -> None:
    have_run(jobs, "ab", 1.4, PLAIN)
    (found,) = known_factors([PLAIN, PLAIN], [0.5, 0.5], 2, None)
    assert (found.source, found.others) == ("others", 1)


def test_others_are_of_the_device_that_was_measured(jobs: Jobs) -> None:
    gpu = replace(SHARES, device="cuda NVIDIA H200")
    have_run(jobs, "ab", 1.3)
    have_run(jobs, "ac", 1.4, gpu)
    assert known(jobs, "de", gpu) == ("measured", 1.4, 0, 1)
    (found,) = known_factors([SHARES, gpu], [0.5, 0.5], 2, None)
    assert (found.source, found.others) == ("measured", 0)


def test_others_are_alike_by_the_cores_and_threads_that_are_planned(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    busy = replace(SHARES, cores_busy=2.0)
    have_run(jobs, "ab", 1.3, busy)  # wanted more cores than there are
    have_run(jobs, "cf", 1.19)
    assert known(jobs, "de", busy) == ("measured", 1.3, 0, 1)
    assert known(jobs, "de", busy, cores=8) == ("measured", 1.19, 0, 1)
    (found,) = known_factors([SHARES, SHARES], [2, 2], 2, None)
    assert found.factor == pytest.approx(1.3)
