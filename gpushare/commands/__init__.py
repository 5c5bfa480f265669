"""The command line: one module per subcommand. Errors are printed here, in one place."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import sys

import click

from gpushare import __version__
from gpushare.commands import common
from gpushare.errors import GpushareError

_COMMANDS = ("run", "profile", "plan", "budget")


class _Commands(click.Group):
    """Each is a function of its own module, which is loaded when it is asked for: a run starts its host sooner."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        found: click.Command = getattr(importlib.import_module(f"gpushare.commands.{cmd_name}"), cmd_name)
        return found


@click.group(cls=_Commands)
@click.version_option(__version__, prog_name="gpushare")
def cli() -> None:
    """Run several unmodified PyTorch scripts on one device, inside one memory budget."""


# Of a write: the disk is full, the reader has gone, the terminal has, a limit of sizes is reached.
_TAKES_NO_MORE = (errno.ENOSPC, errno.EPIPE, errno.EIO, errno.EFBIG, errno.EDQUOT)


def main() -> None:
    """What the console script does."""
    code = _run()
    common.let_go()
    if sys.flags.inspect:  # PYTHONINSPECT is for scripts: here python would show the exit itself as an error
        os._exit(code)
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
    except OSError as error:
        if error.errno not in _TAKES_NO_MORE:
            raise
        common.say(f"what is asked for could not be written: {error.strerror}")
        return 2
