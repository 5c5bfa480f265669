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
