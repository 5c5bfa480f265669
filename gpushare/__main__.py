"""`python -m gpushare` is `gpushare`."""

from gpushare.commands import main

if __name__ == "__main__":
    main()
