"""Which loggers exist is told to each job as if it were alone."""

from pathlib import Path

from conftest import Run

CONFIGURES = """
import logging, logging.config, pathlib, sys, time
seed, other = sys.argv[1:]
if other:
    while not pathlib.Path(other).exists():
        time.sleep(0.01)
console = {"class": "logging.StreamHandler", "stream": "ext://sys.stdout"}
root = {"level": "INFO", "handlers": ["console"]}
logging.config.dictConfig({"version": 1, "handlers": {"console": console}, "root": root})
log = logging.getLogger("train.steps")
known = "train.steps" in logging.root.manager.loggerDict, "other" in logging.root.manager.loggerDict
log.info("seed %s: %s", seed, known)
logging.getLogger("other")
pathlib.Path(f"done-{seed}").touch()
"""


def test_a_logger_that_another_script_has_made_is_new(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    """`dictConfig` would disable it."""
    (tmp_path / "configures.py").write_text(CONFIGURES)
    done = gpushare("run", "configures.py 0 ''", "configures.py 1 done-0", "--log-dir", "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    for seed, name in enumerate(("configures", "configures-2")):
        expected = plain("configures.py", seed, "").stdout
        assert expected == f"seed {seed}: (True, False)\n"
        assert (tmp_path / "logs" / f"{name}.out").read_text() == expected


OWN_CLASS = """
import logging, pathlib, sys, time
class Told(logging.Logger):
    def tell(self):
        print(sys.argv[1], type(self) is Told)
logging.setLoggerClass(Told)
logging.getLogger("of.a.package").tell()
pathlib.Path(sys.argv[1]).touch()
while not pathlib.Path(sys.argv[2]).exists():
    time.sleep(0.01)
if sys.argv[3:]:
    time.sleep(1)  # the other one has ended
    log = logging.getLogger("of.a.package")
    log.tell()
"""
COMES_LATER = """
import pathlib, time
while not (pathlib.Path("one").exists() and pathlib.Path("other").exists()):
    time.sleep(0.01)
time.sleep(2.5)
exec(open("own_class.py").read())
"""


def test_loggers_of_a_class_that_each_job_has_for_itself(gpushare: Run, tmp_path: Path) -> None:
    """As of a package of which each has a copy: they stay of such a class when a job ends."""
    (tmp_path / "own_class.py").write_text(OWN_CLASS)
    (tmp_path / "later.py").write_text(COMES_LATER)
    done = gpushare(
        "run",
        "own_class.py one other",
        "own_class.py other one last",
        "later.py third one",
        "--log-dir",
        "logs",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    first, last, later = (
        (tmp_path / "logs" / f"{n}.out").read_text() for n in ("own_class", "own_class-2", "later")
    )
    assert first == "one True\n"
    assert last == "other True\nother True\n"
    assert later == "third True\n"
