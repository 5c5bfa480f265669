"""Each job has its own copy of an installed package of plain Python; of one with compiled code there is one for all."""

from pathlib import Path

import pytest
from conftest import Run
from packages_installed import write_package

REGISTRY = """
known = {}
def register(name, value):
    if name in known:
        raise KeyError(f"{name} is known already")
    known[name] = value
"""
USES = "import registry\nseen = registry.known\nfrom json import loads\n"
JOB = """
import sys, time
import registry, uses_registry
registry.register("model", sys.argv[1])
time.sleep(1)
print(registry.known, uses_registry.seen, registry is sys.modules["registry"], "registry" in list(sys.modules))
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages, one of them with compiled code."""
    site = tmp_path / "site"
    write_package(site, "registry", {"registry.py": REGISTRY})
    write_package(site, "uses_registry", {"uses_registry.py": USES}, compiled=True)
    (tmp_path / "job.py").write_text(JOB)
    monkeypatch.setenv("PYTHONPATH", str(site))
    return site


def outputs(logs: Path) -> list[str]:
    return [(logs / f"{name}.out").read_text() for name in ("job", "job-2")]


def test_what_a_script_registers_is_its_own(site: Path, gpushare: Run, tmp_path: Path) -> None:
    """A shared module that is imported meanwhile takes a copy that no job has."""
    done = gpushare("run", "job.py one", "job.py other", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert outputs(tmp_path / "logs") == [
        f"{{'model': '{each}'}} {{}} True True\n" for each in ("one", "other")
    ]


def test_what_a_compiled_package_needs_is_shared(site: Path, gpushare: Run, tmp_path: Path) -> None:
    write_package(site, "uses_registry", {"uses_registry.py": USES}, compiled=True, needs=["registry>=1"])
    done = gpushare("run", "job.py one", "job.py other", "--log-dir", "logs")
    assert done.returncode == 1
    assert "model is known already" in done.stdout
    assert sorted(map(len, outputs(tmp_path / "logs")))[0] == 0  # of the one that came later
    assert any(outputs(tmp_path / "logs"))


def test_one_copy_for_all_jobs_if_one_wants_that(site: Path, gpushare: Run, tmp_path: Path) -> None:
    done = gpushare("run", "job.py one", "job.py other", "--log-dir", "logs", "--share", "registry")
    assert done.returncode == 1
    assert "model is known already" in done.stdout
    assert sorted(map(len, outputs(tmp_path / "logs")))[0] == 0  # of the one that came later
    assert any(outputs(tmp_path / "logs"))


def test_a_copy_that_a_shared_package_has_for_itself_stays_one(
    site: Path, gpushare: Run, tmp_path: Path
) -> None:
    """What it imports in a function, while a job calls it, is not the job's."""
    text = "class Text: pass\ndef made():\n    from absl.markup import render\n    return render()\n"
    markup = "from absl.text import Text\ndef render():\n    return Text()\n"
    write_package(site, "absl-py", {"absl/__init__.py": "", "absl/text.py": text, "absl/markup.py": markup})
    shell = "from absl.text import Text, made\ndef is_one(): return isinstance(made(), Text)\n"
    write_package(site, "shell", {"shell.py": shell}, compiled=True, needs=["absl-py>=1"])
    job = "import shell, absl.text\nprint(shell.is_one(), absl.text.Text is not shell.Text)\n"
    (tmp_path / "job.py").write_text(job + "print(isinstance(absl.text.made(), absl.text.Text))\n")
    done = gpushare("run", "job.py", "job.py", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert outputs(tmp_path / "logs") == ["True True\nTrue\n"] * 2


def test_a_name_of_nothing_is_refused(site: Path, gpushare: Run) -> None:
    done = gpushare("run", "job.py one", "job.py other", "--share", "registrie", "--share", "registry")
    assert done.returncode == 2
    assert "no package registrie is installed, which --share names" in done.stderr


def test_a_shared_module_among_a_copys_own_outlives_it(site: Path, gpushare: Run, tmp_path: Path) -> None:
    """As `requests.packages.urllib3` is urllib3."""
    (site / "registry.py").write_text("import colorsys, sys\nsys.modules['registry.colors'] = colorsys\n")
    (tmp_path / "one.py").write_text("import registry, registry.colors\nopen('ends', 'w').close()\n")
    (tmp_path / "other.py").write_text(
        "import colorsys, os, time\nwhile not os.path.exists('ends'): time.sleep(0.01)\ntime.sleep(1)\n"
        "print(colorsys.rgb_to_hsv(1, 0, 0), colorsys.__name__)\n"
    )
    done = gpushare("run", "one.py", "other.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "other | (0.0, 1.0, 1) colorsys" in done.stdout


def test_a_copy_ends_with_its_job(site: Path, gpushare: Run, tmp_path: Path) -> None:
    """What it has registered to be called at the end is called, and the next job's copy is new."""
    (site / "registry.py").write_text(
        REGISTRY + "import atexit\natexit.register(lambda: print('end', known))\n"
    )
    done = gpushare("run", "job.py one", "job.py other", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    ends = [text.splitlines()[-1] for text in outputs(tmp_path / "logs")]
    assert ends == ["end {'model': 'one'}", "end {'model': 'other'}"]
