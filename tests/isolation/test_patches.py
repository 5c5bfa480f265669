"""What scripts assign to classes and modules of packages beside each other, where it can't be split and when it ends.

What can be split is compared with plain python in `test_conformance.py`."""

from pathlib import Path

from conftest import Run

MEET = """
import pathlib, sys, time
def tell(word):
    pathlib.Path(word).touch()
def wait(word):
    while not pathlib.Path(word).exists():
        time.sleep(0.005)
"""


def run(gpushare: Run, tmp_path: Path, one: str, other: str, *options: str) -> tuple[str, str]:
    """What both print, and what gpushare tells."""
    for name, text in (("one", one), ("other", other)):
        (tmp_path / f"{name}.py").write_text(MEET + text)
    done = gpushare("run", "one.py", "other.py", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, done.stderr


def test_a_number_that_the_modules_own_code_reads_is_told(gpushare: Run, tmp_path: Path) -> None:
    one = (
        "import colorsys\nwait('other')\ncolorsys.ONE_THIRD = 0.5\ncolorsys.ONE_THIRD = 0.5\n"
        "tell('set')\nwait('seen')\n"
    )
    other = (
        "import colorsys\nbefore = colorsys.ONE_THIRD\ntell('other')\nwait('set')\nprint(colorsys.ONE_THIRD)\n"
        "tell('seen')\n"
        "while colorsys.ONE_THIRD == 0.5: time.sleep(0.005)\nprint(colorsys.ONE_THIRD == before)\n"
    )
    out, told = run(gpushare, tmp_path, one, other)
    assert "other | 0.5" in out
    assert "other | True" in out  # as before, when the job that had set it has ended
    [note] = [line for line in told.splitlines() if "ONE_THIRD" in line]
    assert "one sets colorsys.ONE_THIRD to 0.5" in note
    assert "other (0.333" in note and "one after the other" in note


def test_a_special_method_that_a_class_did_not_have_is_told(gpushare: Run, tmp_path: Path) -> None:
    one = "import torch\nwait('other')\ntorch.nn.Module.__len__ = lambda self: 3\ntell('set')\nwait('seen')\n"
    other = (
        "import torch\ntell('other')\nwait('set')\nprint(len(torch.nn.ReLU()))\ntell('seen')\n"
        "while hasattr(torch.nn.Module, '__len__'): time.sleep(0.005)\nprint('back')\n"
    )
    out, told = run(gpushare, tmp_path, one, other)
    assert "other | 3" in out and "other | back" in out
    assert "one sets torch.nn.modules.module.Module.__len__ to" in told


def test_a_name_that_only_looks_special_is_split_as_any(gpushare: Run, tmp_path: Path) -> None:
    one = "import torch\nwait('other')\ntorch.nn.ReLU.__made_up__ = 3\ntell('set')\nwait('seen')\n"
    other = (
        "import torch\ntell('other')\nwait('set')\nprint(hasattr(torch.nn.ReLU(), '__made_up__'))\n"
        "torch.nn.ReLU.__made_up__ = 4\nprint(torch.nn.ReLU().__made_up__)\ntell('seen')\n"
    )
    out, told = run(gpushare, tmp_path, one, other)
    assert "other | False" in out and "other | 4" in out
    assert "__made_up__" not in told


def test_alone_a_script_may_do_what_it_likes(gpushare: Run, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(
        "import colorsys, torch\ncolorsys.ONE_THIRD = 0.5\nprint(vars(colorsys)['ONE_THIRD'])\n"
        "torch.nn.Linear.forward = len\nprint(vars(torch.nn.Linear)['forward'] is len)\n"
    )
    done = gpushare("run", "one.py")
    assert done.stdout.count("True") == 1 and "0.5" in done.stdout
    assert "ONE_THIRD" not in done.stderr


def test_who_patches_what_another_one_has_patched_finds_the_original(gpushare: Run, tmp_path: Path) -> None:
    text = (
        "import base64, torch\n"
        "wait(FIRST) if FIRST else None\n"
        "encode, forward = base64.b64encode, torch.nn.Linear.forward\n"
        "base64.b64encode = lambda data: LETTER + encode(data)\n"
        "torch.nn.Linear.forward = lambda self, x: (LETTER, forward(self, x).shape)\n"
        "tell(THEN)\nwait('other')\n"
        "with torch.no_grad(): print(base64.standard_b64encode(b'x'), torch.nn.Linear(1, 1)(torch.ones(2, 1)))\n"
    )
    one = "FIRST, LETTER, THEN = '', b'1', 'one'\n" + text
    other = "FIRST, LETTER, THEN = 'one', b'2', 'other'\n" + text
    out, told = run(gpushare, tmp_path, one, other)
    assert "one | b'1eA==' (b'1', torch.Size([2, 1]))" in out
    assert "other | b'2eA==' (b'2', torch.Size([2, 1]))" in out
    assert "one after the other" not in told


def test_what_a_package_sets_in_the_place_of_a_scripts_patch_is_the_jobs(
    gpushare: Run, tmp_path: Path
) -> None:
    one = (
        "from unittest import mock\nimport torch\ntorch.nn.ReLU.forward = lambda self, x: 'own'\n"
        "with mock.patch.object(torch.nn.ReLU, 'forward', lambda self, x: 'mock'):\n"
        "    print(torch.nn.ReLU()(1))\n    tell('set')\n    wait('seen')\n"
        "print(torch.nn.ReLU()(1))\ntell('back')\nwait('seen again')\n"
    )
    other = (
        "import torch\nfor told, seen in (('set', 'seen'), ('back', 'seen again')):\n"
        "    wait(told)\n    print(torch.nn.ReLU()(torch.ones(1)))\n    tell(seen)\n"
    )
    out, _ = run(gpushare, tmp_path, one, other)
    assert [line for line in out.splitlines() if line.startswith("one |")] == ["one | mock", "one | own"]
    assert [line for line in out.splitlines() if line.startswith("other |")] == ["other | tensor([1.])"] * 2


def test_all_is_as_before_when_nobody_is_left_who_set_it(gpushare: Run, tmp_path: Path) -> None:
    one = (
        "import base64, torch\nwait('looked')\nbase64.b64encode = torch.nn.ReLU.forward = print\n"
        "base64.more = torch.nn.ReLU.more = 1\n"
        "tell('set')\nwait('seen')\n"
    )
    other = (
        "import base64, torch\nbefore = [vars(base64)['b64encode'], vars(torch.nn.ReLU)['forward']]\n"
        "tell('looked')\nwait('set')\n"
        "seen = [vars(base64)['b64encode'], vars(torch.nn.ReLU)['forward']]\n"
        "print(all(s is not b for s, b in zip(seen, before)))\ntell('seen')\n"
        "while vars(torch.nn.ReLU)['forward'] is not before[1] or 'more' in vars(torch.nn.ReLU): time.sleep(0.005)\n"
        "while vars(base64)['b64encode'] is not before[0] or hasattr(type(base64), 'more'): time.sleep(0.005)\n"
        "print(vars(base64)['b64encode'] is before[0], 'more' in vars(base64), 'more' in vars(torch.nn.ReLU))\n"
        "print(hasattr(base64, 'more'), base64.b64encode is before[0])\n"
    )
    out, _ = run(gpushare, tmp_path, one, other)
    assert [line for line in out.splitlines() if line.startswith("other |")] == [
        "other | True",
        "other | True False False",
        "other | False True",
    ]
