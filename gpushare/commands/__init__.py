"""The command line: one module per subcommand. Errors are printed here, in one place."""

from __future__ import annotations

import contextlib
import io
import sys

import click

from gpushare import __version__
from gpushare.commands import common
from gpushare.commands.budget import budget
from gpushare.commands.plan import plan
from gpushare.commands.profile import profile
from gpushare.commands.run import run
from gpushare.errors import GpushareError


@click.group()
@click.version_option(__version__, prog_name="gpushare")
def cli() -> None:
    """Run several unmodified PyTorch scripts on one device, inside one memory budget."""


cli.add_command(run)
cli.add_command(profile)
cli.add_command(plan)
cli.add_command(budget)


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a job may write what the terminal can't show
    code = _run()
    common.let_go()
    sys.exit(code)


def _run() -> int:
    try:
        code: int | None = cli.main(standalone_mode=False)
        return code or 0
    except GpushareError as error:
        common.say(str(error))
        return error.exit_code
    except click.ClickException as error:
        with contextlib.suppress(OSError):
            error.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        common.say("interrupted")
        return 130
