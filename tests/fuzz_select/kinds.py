"""Kinds of values. A kind is a column type, or a part of one whose values a function is tried with:
small whole numbers, and texts of which many read as times.
"""

from __future__ import annotations

from tests.sql.rows import COLUMNS

SMALL = "SMALL"
TIME_TEXT = "TIME TEXT"
#: kind → the kinds whose values may stand for it
_STAND_FOR = {"INT": ("INT", SMALL), "VARCHAR": ("VARCHAR", TIME_TEXT)}
WHOLE = ("INT", SMALL, "BIGINT", "TINYINT", "BIGINT UNSIGNED")
REAL = ("DOUBLE", "FLOAT")
NUMBERS = (*WHOLE, *REAL)
TEXT = ("VARCHAR", TIME_TEXT)
#: columns of `tests/sql/rows.py` that hold only a part of their type
_NARROW = {"n": SMALL, "w": TIME_TEXT}
#: letters of the types that an answer may have
LETTERS = {
    **dict.fromkeys(WHOLE, "I"),
    **dict.fromkeys(REAL, "R"),
    **dict.fromkeys(TEXT, "T"),
    "BOOL": "B",
    "TIMESTAMP": "M",
}


def kind_of_column(name: str) -> str:
    """Return the kind of a column of `tests/sql/rows.py`."""
    return _NARROW.get(name, COLUMNS[name].kind)


def standing_for(kind: str) -> tuple[str, ...]:
    """Return the kinds whose values may stand where *kind* is wanted."""
    return _STAND_FOR.get(kind, (kind,))
