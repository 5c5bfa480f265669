import zipapp
from pathlib import Path

import pytest

from gpushare import jobs
from gpushare.errors import UsageError


def test_a_command_line(tmp_path: Path) -> None:
    spec = jobs.parse_job("train.py --lr 0.1 'a b'", tmp_path)
    assert (spec.name, spec.kind, spec.target) == ("train", "script", "train.py")
    assert spec.args == ("--lr", "0.1", "a b")


def test_a_command_line_longer_than_a_name_of_a_file(tmp_path: Path) -> None:
    options = " ".join(f"--option-{n} {n}" for n in range(200))
    assert len(jobs.parse_job(f"train.py {options}", tmp_path).args) == 400


def test_a_command_is_read_without_its_file_too(tmp_path: Path) -> None:
    (tmp_path / "my model.py").write_text("")
    spec = jobs.parse_job("my model.py", tmp_path)
    elsewhere = jobs.parse_job(spec.command, tmp_path / "elsewhere")
    assert (elsewhere.name, elsewhere.target, elsewhere.args) == ("my model", "my model.py", ())
    assert jobs.parse_job("train.py --lr 0.1", tmp_path).command == "train.py --lr 0.1"


def test_a_profile_is_known_by_how_it_begins(tmp_path: Path) -> None:
    texts = {
        "a": '{"format": "gpushare-profile", "version": 5}',
        "b.py": '\n{\n  "format":"gpushare-profile"',
        "c.json": '{"format": "gpushare-pair"}',
        "d.py": "import torch  # gpushare-profile",
        "e": "",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    found = [name for name in (*texts, ".", "none", "x" * 300) if jobs.is_profile(tmp_path / name)]
    assert found == ["a", "b.py"]


def test_a_module(tmp_path: Path) -> None:
    spec = jobs.parse_job("-m package.train --x", tmp_path)
    assert (spec.name, spec.kind, spec.target, spec.args) == ("train", "module", "package.train", ("--x",))


@pytest.mark.parametrize("text", ["", "-m", "--bugdet", "a.py 'open"])
def test_what_is_no_job(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        jobs.parse_job(text, tmp_path)


def test_repeats_are_numbered(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("")
    specs = jobs.with_unique_names([jobs.parse_job("a.py", tmp_path)] * 3)
    assert [s.name for s in specs] == ["a", "a-2", "a-3"]


def test_job_file(tmp_path: Path) -> None:
    file = tmp_path / "jobs.toml"
    file.write_text('[[job]]\ncommand = "a.py 1"\nname = "x"\nenv = {A = "1"}\npriority = 3\n')
    (spec,) = jobs.load_job_file(file)
    assert (spec.name, spec.args, spec.env, spec.priority, spec.cwd) == ("x", ("1",), {"A": "1"}, 3, tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no \\[\\[job\\]\\]"),
        ("budget = '8GiB'\n[[job]]\ncommand = 'a.py'", "unknown key 'budget': .*options such as --budget on"),
        ("[[jobs]]\ncommand = 'a.py'", "unknown key 'jobs': only \\[\\[job\\]\\] tables"),
        ("[[job]]\nname = 'x'", "no command"),
        ("[[job]]\ncommand = ''", "jobs.toml: job 1: a job must be .* but got an empty one"),
        ("[[job]]\ncommand = 'a.py \"x'", "jobs.toml: job 1: the job .* can't be read: No closing quotation"),
        ("[[job]]\ncommand = 'a.py'\nenv = {'A=B' = '1'}", "job 1: env can't have 'A=B'"),
        ("[[job]]\ncommand = 'a.py'\nenv = {A = \"\\u0000\"}", "job 1: env can't have 'A'"),
        ("[[job]]\ncommand = 'a.py'\nnmae = 'x'", "unknown key 'nmae'"),
        (
            "[[job]]\ncommand = 'a.py'\npriority = -1000000001",
            "priority must be from -1000000000 to 1000000000, but",
        ),
        ("[[job]]\ncommand = 'a.py'\npriority = true", "priority must be a whole number, but got True"),
        ("[[job]]\ncommand = 'a.py'\npriority = " + "9" * 5000, "can't be read"),
        ("[[job]]\ncommand = 3", "command must be a text"),
        ("[[job]", "can't be read"),
        ("[[job]]\ncommand = 'a.py'\nname='a/b'", "must do for files"),
        ("[[job]]\ncommand = 'a.py'\nname='..'", "must do for files"),
        ("[[job]]\ncommand = 'a.py'\nname='a\\u0000'".replace("'", '"'), "must do for files"),
        ("[[job]]\ncommand = 'a.py'\nname=''", "must do for files"),
        ('[[job]]\ncommand = "a.py"\ncwd="a\\u0000"', "cwd can't be read"),
        ("[[job]]\ncommand = 'a.py'\nname='x'\n[[job]]\ncommand='b.py'\nname='x'", "2 jobs named 'x'"),
    ],
)
def test_bad_job_files(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "jobs.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=message):
        jobs.load_job_file(file)


def test_check_finds_what_cannot_start(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("x = 1\ny = (\n")
    with pytest.raises(UsageError, match=r"bad\.py, line 2"):
        jobs.check(jobs.parse_job("bad.py", tmp_path))
    with pytest.raises(UsageError, match=r"no script none\.py"):
        jobs.check(jobs.parse_job("none.py", tmp_path))
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match="is a directory"):
        jobs.check(jobs.parse_job("folder", tmp_path))
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__main__.py").write_text("x = 1\n")
    zipapp.create_archive(tmp_path / "app", interpreter="/usr/bin/env python")
    with pytest.raises(
        UsageError, match=r"app\.pyz is a zip archive; a job is a script or '-m module': unpack it"
    ):
        jobs.check(jobs.parse_job("app.pyz", tmp_path))
    with pytest.raises(UsageError, match="no module nowhere"):
        jobs.check(jobs.parse_job("-m nowhere.at_all", tmp_path))
    (tmp_path / "b.json").write_text("{}")
    with pytest.raises(
        UsageError, match=r"b\.json is no script; a profile is for the command line of `gpushare plan`"
    ):
        jobs.check(jobs.parse_job("b.json", tmp_path))
    (tmp_path / "b.profile").write_text('{"format": "gpushare-profile", "version": 6}')
    with pytest.raises(UsageError, match=r"b\.profile is no script; a profile is for"):
        jobs.check(jobs.parse_job("b.profile --x", tmp_path))
    jobs.check(jobs.parse_job("-m timeit", tmp_path))
