"""`gpushare plan` with files of profiles, and which profiles are kept."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpushare.commands import cli, reports
from gpushare.commands.profile import measure
from gpushare.jobs import parse_job
from gpushare.launcher import devices
from gpushare.launcher.logs import Logs
from gpushare.launcher.plan import RunPlan
from gpushare.launcher.run import Run
from gpushare.profiles import Profile, pairs, store
from gpushare.views.plain import PlainScreen

MIB = 1 << 20
HELD, TIMES = (2 * MIB, 8 * MIB, 4 * MIB), (0.0, 0.1, 0.2)
PROFILE = Profile(
    "train.py", "2.13.0", "cpu", 2 * MIB, 0, 0, 0, 8 * MIB, MIB, 2 * MIB, 0.3, HELD, TIMES, cores_busy=0.5
)
Plan = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def plan(capsys: pytest.CaptureFixture[str]) -> Plan:
    """Plans with the profiles as files: exit code, stdout, stderr."""

    def run(*profiles: Profile, options: tuple[str, ...] = ()) -> tuple[int, str, str]:
        names = [f"{number}.profile" for number in range(len(profiles))]
        for name, profile in zip(names, profiles, strict=True):
            Path(name).write_text(json.dumps(profile.to_json()))
        usual = ("--policy", "zico", "--iterations", "2", "--budget", "64MiB", "--json")
        try:
            code = cli.main(["plan", *names, *usual, *options], standalone_mode=False)
        except Exception as error:
            return getattr(error, "exit_code", -1), "", f"{type(error).__name__}: {error}"
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_a_profile_of_any_name_is_planned_under_the_name_of_its_script(plan: Plan) -> None:
    code, out, err = plan(replace(PROFILE, command="'my model.py'"), PROFILE)
    assert code == 0, err
    assert [job["name"] for job in json.loads(out)["jobs"]] == ["my model", "train"]
    assert err == ""


def test_what_runs_of_a_pair_have_taught_counts_for_its_files(plan: Plan) -> None:
    pairs.learn("one", "other", 1.4)
    keyed = replace(PROFILE, key="one"), replace(PROFILE, key="other")
    (pair,) = json.loads(plan(*keyed)[1])["pairs"]
    assert (pair["source"], pair["factor"]) == ("learned", 1.4)
    (pair,) = json.loads(plan(PROFILE, keyed[1])[1])["pairs"]
    assert pair["source"] == "default"


def test_what_other_pairs_have_taught_is_of_the_device_of_the_profiles(plan: Plan) -> None:
    gpu = replace(PROFILE, device="cuda X")
    for device, profile, factor in (("cpu", PROFILE, 1.2), ("gpu", gpu, 1.6)):
        for which in "ab":
            store.save(f"{device} {which}", profile)
        pairs.learn(f"{device} a", f"{device} b", factor)
    code, out, err = plan(gpu, gpu)
    (pair,) = json.loads(out)["pairs"]
    assert code == 0 and (pair["source"], pair["factor"], pair["others"]) == ("others", 1.6, 1)
    assert "not measured on cpu, the device here: train (cuda X), train-2 (cuda X)" in err


def test_what_other_pairs_have_taught_is_by_the_cores_that_are_planned(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    for which in "ab":
        store.save(which, replace(PROFILE, cores_busy=2.0))
    pairs.learn("a", "b", 1.5)  # want more cores than there are
    (pair,) = json.loads(plan(PROFILE, PROFILE)[1])["pairs"]
    assert pair["source"] == "default"
    (pair,) = json.loads(plan(PROFILE, PROFILE, options=("--threads", "2"))[1])["pairs"]
    assert (pair["source"], pair["factor"]) == ("others", 1.5)
    (pair,) = json.loads(plan(PROFILE, PROFILE, options=("--threads", "2", "--cores", "4"))[1])["pairs"]
    assert pair["source"] == "default"


def test_what_cant_be_simulated_is_told(plan: Plan) -> None:
    code, _, told = plan(replace(PROFILE, page_bytes=5000))
    assert code == 2 and "0.profile is damaged: page_bytes must be a power of two" in told
    code, _, told = plan(replace(PROFILE, page_bytes=128 * MIB))
    assert code == 2 and told.startswith(
        "UsageError: the jobs can't be simulated: a simulation needs a budget"
    )


def test_a_command_takes_no_profile_for_a_script(plan: Plan) -> None:
    plan(PROFILE)
    for command in ("run", "profile"):
        with pytest.raises(Exception, match=r"0\.profile is no script; a profile is for"):
            cli.main([command, "0.profile"], standalone_mode=False)
    Path("jobs.toml").write_text("[[job]]\ncommand = '0.profile'\n")
    with pytest.raises(Exception, match="a job file and the other commands take scripts only"):
        cli.main(["plan", "-f", "jobs.toml"], standalone_mode=False)


@pytest.mark.parametrize(("status", "signal"), [("failed", None), ("interrupted", 2)])
def test_a_profile_that_is_not_kept_is_told(
    status: str, signal: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def execute(run: Run) -> None:
        run.profiles[0] = PROFILE
        run.results[0].status, run.results[0].message = status, "why"
        run._signals.ended_by = signal

    monkeypatch.setattr(Run, "execute", execute)
    Path("train.py").write_text("")
    spec = parse_job("train.py")
    found, _ = measure(spec, devices.choose("cpu"), 64 * MIB)
    assert found == PROFILE and store.find(spec, "cpu") is None
    told = f"gpushare: the profile is not kept: train ended as {status} after it was measured: why\n"
    assert capsys.readouterr().err == told


def test_a_job_that_exits_after_it_was_measured_is_told_with_its_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def execute(run: Run) -> None:
        run.profiles[0] = PROFILE
        run.results[0].status, run.results[0].exit_code = "failed", 5

    monkeypatch.setattr(Run, "execute", execute)
    Path("train.py").write_text("")
    measure(parse_job("train.py"), devices.choose("cpu"), 64 * MIB)
    told = capsys.readouterr().err
    assert told == "gpushare: the profile is not kept: train exited with 5 after it was measured\n"


@pytest.mark.parametrize("saved", [None, PROFILE])
def test_after_a_stop_a_saved_profile_stays_and_that_is_told(
    saved: Profile | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = RunPlan([parse_job("train.py", tmp_path)], [saved], 64 * MIB, "zico")
    run = Run(plan, Logs(tmp_path, ["train"]), PlainScreen(sys.stderr, sys.stderr))
    run.profiles, run.stopped_profiles = {0: PROFILE}, {0}
    reports._keep_profiles(run)
    told = capsys.readouterr().err.partition(": the run was stopped by Ctrl-Z")[0]
    stays = "the new profile of train is not kept, its saved one stays"
    assert told == f"gpushare: {stays if saved else 'the profile of train is not kept'}"


def test_a_profile_that_was_complete_after_a_stop_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def execute(run: Run) -> None:
        run.results[0].status = "ok"
        run._signals.stopped_s = 3.0
        run._profiled(0, {})

    monkeypatch.setattr(Profile, "from_host", lambda *_: PROFILE)
    monkeypatch.setattr(Run, "execute", execute)
    Path("train.py").write_text("")
    spec = parse_job("train.py")
    found, _ = measure(spec, devices.choose("cpu"), 64 * MIB)
    assert found is not None and store.find(spec, "cpu") is None
    assert "the profile is not kept: the run was stopped by Ctrl-Z" in capsys.readouterr().err
