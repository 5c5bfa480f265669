"""Names of a module that its functions read and set, without a host: the process is the only one who has them."""

import types

from gpushare.isolation.swapped_names import SwappedNames, has_names

CODE = """
made = None
def make(again=False):
    global made
    made = object()
    return make() if again else made
"""


def module() -> types.ModuleType:
    made = types.ModuleType("made")
    exec(CODE, vars(made))
    return made


def test_a_version_that_keeps_its_state_elsewhere_is_left_alone() -> None:
    assert has_names(module(), "made", "make")
    assert not has_names(module(), "made", "elsewhere")


def test_what_a_function_sets_is_there_at_its_next_call() -> None:
    of = module()
    names = SwappedNames(of, ("made",))
    make, read = names.around(vars(of)["make"]), names.around(lambda: vars(of)["made"])
    assert read() is None
    vars(of)["make"] = make
    last = make(again=True)  # calls itself by the name in the module
    vars(of)["made"] = "another job's"
    assert read() is last
