"""The program `gpushare`, which `python -m gpushare` is too."""

from __future__ import annotations

import sys

from gpushare import streams


def main() -> None:
    """The console script."""
    # Before anything else: libraries keep files open as well (libffi, which `ctypes` loads, its own).
    streams.open_closed()
    streams.show_anything()
    try:
        from gpushare import commands
    except KeyboardInterrupt:
        print("gpushare: interrupted", file=sys.stderr)
        sys.exit(130)
    commands.main()


if __name__ == "__main__":
    main()
