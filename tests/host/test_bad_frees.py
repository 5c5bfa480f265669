from gpushare.host.bad_frees import describe
from gpushare.native import usage
from gpushare.native.usage import BadFreeReport

NAMES = ["a", "b"]


def test_each_kind_in_words() -> None:
    twice = BadFreeReport(0x10, 64, 0, 3, usage.FREED_TWICE, 2, 1, 1)
    assert describe(twice, NAMES) == (
        "bad free: b freed 0x10, a block of 64 bytes of a that a had freed in its iteration 3"
    )
    inside = BadFreeReport(0x10, 64, 8, 0, usage.FREED_INSIDE, 1, 2, 0)
    assert (
        describe(inside, NAMES)
        == "bad free: a freed 0x10, which lies 8 bytes inside a block of 64 bytes of b"
    )
    nothing = BadFreeReport(0x10, 0, 0, 0, 3, 0, 0, 0)
    assert describe(nothing, NAMES) == "bad free: no job freed 0x10, where no block is, nor was one lately"
