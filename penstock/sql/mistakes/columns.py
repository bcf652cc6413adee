"""Definitions of columns with what only other databases have, and types without a length."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from penstock.errors import SqlSyntaxError
from penstock.sql.mistakes.place import Place

_SIZED = ("VARCHAR", "NCHAR", "BINARY", "VARBINARY")
_NUMBERED = ("AUTO_INCREMENT", "AUTOINCREMENT", "IDENTITY", "SERIAL", "GENERATED")
_CONSTRAINTS = ("NOT", "NULL", "DEFAULT", "UNIQUE", "CHECK", "REFERENCES", "ON", "COLLATE")
_OF_TABLES = ("CONSTRAINT", "FOREIGN", "UNIQUE", "CHECK", "INDEX", "PRIMARY")


def _no_length(place: Place) -> SqlSyntaxError | None:
    kind = place.word(-1)
    if kind not in _SIZED or not place.says('expected "("'):
        return None
    return place.mistake(f"{kind} needs a length", f"write {kind}(64), or what you need", -1)


def _no_constraint(place: Place) -> SqlSyntaxError | None:
    """What stands behind a column's type elsewhere."""
    if not _defines(place) or not place.says('expected "," or ")"'):
        return None
    word = place.word()
    if word in _NUMBERED:
        return place.mistake(
            "rows are not numbered by themselves",
            "leave it out: the time of the first column is the key of a row",
        )
    if word in _CONSTRAINTS:
        return place.mistake(
            f"columns have no {'NOT NULL' if word == 'NOT' else word}",
            "leave it out: only the time must not be NULL",
        )
    return None


def _no_table_constraint(place: Place) -> SqlSyntaxError | None:
    """PRIMARY KEY (…) and others in the place of a column."""
    if not _defines(place) or not place.says("expected a column type"):
        return None
    word = place.word(-1)
    if word not in _OF_TABLES or place.kind(-2) not in (TokenType.COMMA, TokenType.L_PAREN):
        return None
    if word == "PRIMARY":
        return place.mistake(
            "the first column, a TIMESTAMP, is the key of a table",
            "leave PRIMARY KEY (…) out; a second column of the key is written name type"
            " COMPOSITE KEY",
            -1,
        )
    return place.mistake(f"tables have no {word}", "leave it out: the time is the key", -1)


def _defines(place: Place) -> bool:
    """Tell if the statement defines columns."""
    return bool(place.tokens) and place.tokens[0].text.upper() in ("CREATE", "ALTER")


COLUMNS = (_no_length, _no_constraint, _no_table_constraint)
