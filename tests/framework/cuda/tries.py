"""Parts of a program, each tried whatever became of those before it: a GPU may be at hand for minutes only.

The first that fails is to be looked at first: what it has left behind may fail others.
"""

import os
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

NO_BRIDGE = "can't be built"  # as gpushare says it


class Tries:
    """Parts by name, and which of them have failed."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def part(self, name: str, test: Callable[[], None]) -> None:
        """What fails is told at once. No error is kept, with what its frames hold: the next part counts memory."""
        try:
            test()
        except BaseException as error:
            print(
                f"{name} failed:\n{''.join(traceback.format_exception(error))}", file=sys.stderr, flush=True
            )
            self.failed.append(name)

    def end(self) -> NoReturn:
        """Exit code 1 if one has failed, which is said last; else `ok`."""
        if self.failed:
            print(f"failed: {', '.join(self.failed)}", file=sys.stderr, flush=True)
        else:
            print("ok", flush=True)
        os._exit(
            1 if self.failed else 0
        )  # the sampler's thread must not meet a driver that is being taken down


def allocator_is_there(told: list[str], plain: bool) -> None:
    """Only a bridge that can't be built leaves nothing to try; what else gpushare has told is for the reader."""
    for note in told:
        print(f"told: {note}", file=sys.stderr, flush=True)
    if plain:
        assert len(told) == 1 and "there is no C++ compiler" in told[0] and "held off" in told[0], told
    else:
        assert not any(NO_BRIDGE in note for note in told), told
