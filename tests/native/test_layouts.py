"""What the shim fills in has the fields that Python reads: one that is too short is written beyond its end."""

import ctypes
import re
from pathlib import Path

import pytest

from gpushare.native import library

HEADER = Path(__file__).parents[2] / "shim" / "include" / "gpushare.h"


@pytest.mark.parametrize(
    ("name", "structure"),
    [
        ("gs_memory", library.Memory),
        ("gs_kind", library.Kind),
        ("gs_bad_free", library.BadFree),
        ("gs_piece", library.Piece),
    ],
)
def test_fields_are_those_of_the_header(name: str, structure: type[ctypes.Structure]) -> None:
    body = re.search(rf"typedef struct {name} {{(.*?)}} {name};", HEADER.read_text(), re.DOTALL)
    assert body
    code = re.sub(r"//[^\n]*", "", body[1])
    declared = [
        field for line in code.split(";") for field in line.split()[1:] for field in field.split(",") if field
    ]
    assert [re.sub(r"\[.*", "", field) for field in declared] == [field[0] for field in structure._fields_]
