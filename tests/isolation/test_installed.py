"""Of which installed packages a job has a copy: told from what installers have written down, or from files."""

import re
import sys
from pathlib import Path

import pytest

from gpushare.isolation import installed
from gpushare.isolation.installed import Distribution, Installed


def distribution(name: str, *needs: str, compiled: bool = False) -> Distribution:
    versions = dict(re.findall(r"([\w-]+)(.*)", need)[0] for need in needs)
    top = name.replace("-", "_")
    return Distribution(name, versions, frozenset({top}), compiled)


FOUND = [
    distribution("torch", "symbols", compiled=True),
    distribution("symbols"),
    distribution("tokens", "hub", compiled=True),
    distribution("wandb", "git", compiled=True),
    distribution("git"),
    distribution("hub", "bars", "rich"),
    distribution("bars"),
    distribution("rich"),
    distribution("models", "tokens", "hub", "torch==2.0"),
    distribution("checks-core", compiled=True),
    distribution("checks", "checks-core==2.1"),
    distribution("jax", "jaxlib<=4,>=4"),
    distribution("jaxlib", compiled=True),
    distribution("tensorboard", "markdown"),
    distribution("markdown"),
    distribution("loaded"),
    distribution("gpushare", "click", compiled=True),
    distribution("click"),
]


@pytest.mark.parametrize(
    ("name", "is_own"),
    [
        ("torch", False),
        ("symbols", False),  # needed by a compiled one
        ("bars", False),  # by one that is needed
        ("models", True),  # it needs compiled ones, they do not need it, and torch is no reason
        ("rich", True),  # needed, but apart
        ("checks", False),  # names its compiled one by its exact version
        ("jax", False),
        ("tensorboard", False),  # torch imports it
        ("markdown", True),
        ("loaded", False),
        ("click", True),  # only we need it
        ("wandb", True),  # what is compiled of it is no module
        ("git", True),
    ],
)
def test_what_installers_have_written(name: str, is_own: bool) -> None:
    assert Installed(FOUND, ["loaded", "rich"]).has_own(name) == is_own


def test_what_a_person_wants_to_share_and_what_that_needs() -> None:
    found = [*FOUND, distribution("sweeps", "plots"), distribution("plots"), distribution("other")]
    kept = Installed(found, [], ["Sweeps"])
    assert [kept.has_own(name) for name in ("sweeps", "plots", "other")] == [False, False, True]


def test_what_a_person_wants_to_share_may_use_its_extras() -> None:
    """As transformers does accelerate; what is installed of them, and what that needs."""
    uses = Distribution("uses", {}, frozenset({"uses"}), False, frozenset({"used", "absent", "rich"}))
    found = [*FOUND, uses, distribution("used", "plots"), distribution("plots")]
    names = ("uses", "used", "plots", "rich")
    assert [Installed(found, [], ["uses"]).has_own(name) for name in names] == [False, False, False, True]
    assert all(Installed(found, []).has_own(name) for name in names)


def test_rich_is_shared_if_one_wants_that() -> None:
    assert not Installed(FOUND, [], ["rich"]).has_own("rich")


def test_one_compiled_part_of_a_common_name_makes_all_shared() -> None:
    found = [
        Distribution("google-a", {}, frozenset({"google"}), True),
        Distribution("google-b", {}, frozenset({"google"}), False),
    ]
    assert not Installed(found, []).has_own("google")


@pytest.mark.parametrize(
    ("files", "is_own"),
    [
        ({"there/__init__.py": "", "there/data.txt": ""}, True),
        ({"there/__init__.py": "", "there/inner/fast.cpython-311-x86_64-linux-gnu.so": ""}, False),
        ({"there/__init__.py": "", "there/lib/libthing.so.12": ""}, False),
        ({"there.py": ""}, True),
        ({"elsewhere.py": ""}, False),
    ],
)
def test_of_what_no_installer_knows_the_files_tell(
    files: dict[str, str], is_own: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    kept = Installed([], [])
    assert [kept.has_own("there"), kept.has_own("there")] == [is_own, is_own]


def test_what_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "Some_Thing-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: Some.Thing\nVersion: 1.0\n"
        "Requires-Dist: numpy>=1.20; python_version > '3'\nRequires-Dist: Fast_Core (==1.2.*)\n"
        "Requires-Dist: seaborn[stats]>=1; extra == 'plots'\nRequires-Dist: fsspec[http]<2\n"
        'Requires-Dist: colorama; platform_system == "Windows"\n'
        "Requires-Dist: tzdata; sys_platform == 'win32' or python_version < '3.9'\n\nName: a description\n"
    )
    (folder / "RECORD").write_text(
        "some/__init__.py,sha256=x,1\nsome/__pycache__/__init__.cpython-311.pyc,,\nsingle.py,sha256=x,1\n"
        'other/fast.abi3.so,sha256=x,1\n"some/a,b.txt",sha256=x,1\n../../bin/some,sha256=x,1\n'
        "Some_Thing-1.0.dist-info/METADATA,sha256=x,1\nsome.pth,sha256=x,1\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert list(installed.distributions()) == [
        Distribution(
            "some-thing",
            {"numpy": ">=1.20", "fast-core": "==1.2.*", "fsspec": "[http]<2", "tzdata": ""},
            frozenset({"some", "single", "other"}),
            True,
            frozenset({"seaborn"}),
        )
    ]


def test_names_of_nothing_that_is_installed() -> None:
    assert installed.unknown([]) == []
    assert installed.unknown(["torch", "Nothing-Like-It", "PyYAML", "yaml", "json"]) == ["Nothing-Like-It"]


@pytest.mark.parametrize("compiled", [True, False])
def test_the_files_of_an_editable_install_tell(
    compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, source = tmp_path / "site" / "my_project-1.dist-info", tmp_path / "src" / "project"
    folder.mkdir(parents=True)
    source.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: my-project\nVersion: 1\n\n")
    (folder / "RECORD").write_text("__editable__.my_project-1.pth,,\nmy_project-1.dist-info/METADATA,,\n")
    (folder / "top_level.txt").write_text("project\n")
    (source / "__init__.py").touch()
    if compiled:
        (source / "_C.so").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), str(source.parent)])
    [found] = list(installed.distributions())
    assert found == Distribution("my-project", {}, frozenset({"project"}), compiled)
