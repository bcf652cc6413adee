"""The dispatch by type of statement, and parts that several statements share."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from functools import singledispatch

from penstock.sql import statements as st
from penstock.sql.words import quote_name, quote_string


@singledispatch
def render(statement: st.Statement) -> str:
    """The canonical text of *statement*, without a semicolon."""
    raise TypeError(f"no text for {type(statement).__name__}")


def name(value: st.Name) -> str:
    """`[database.]name`, quoted where needed."""
    return (quote_name(value.database) + "." if value.database is not None else "") + quote_name(
        value.name
    )


def value(item: st.Value) -> str:
    """A literal as SQL."""
    if item is None:
        return "NULL"
    if isinstance(item, bool):
        return "TRUE" if item else "FALSE"
    if isinstance(item, str):
        return quote_string(item)
    if isinstance(item, bytes):
        return quote_string(f"\\x{item.hex()}")
    if isinstance(item, st.RelativeTime):
        base = quote_string(str(item.base)) if item.literal else str(item.base)
        return base + "".join(
            f" {'+' if sign > 0 else '-'} {length}" for sign, length in item.steps
        )
    return _decimal(item) if isinstance(item, Decimal) else repr(item)


def _decimal(item: Decimal) -> str:
    # Long forms stay Decimal when read again: a short one is padded with zeros behind the point.
    text = str(item)
    if len(text.lstrip("-")) > 16:
        return text
    mantissa, _, exponent = text.partition("E")
    mantissa += "" if "." in mantissa else "."
    return mantissa + "0" * (17 - len(text.lstrip("-"))) + (f"E{exponent}" if exponent else "")


def parenthesis(items: Iterable[str]) -> str:
    return "(" + ", ".join(items) + ")"


def words(*parts: str | None) -> str:
    return " ".join(p for p in parts if p)


def flag(word: str, given: bool | None) -> str | None:
    return None if given is None else f"{word} {int(given)}"


def optional(word: str, given: object) -> str | None:
    return None if given is None else f"{word} {given}"


def word_if(word: str, given: bool) -> str | None:
    return word if given else None


def comment(text: str | None) -> str | None:
    return None if text is None else f"COMMENT {quote_string(text)}"


def column_definition(column: st.ColumnDef) -> str:
    origin = f"FROM {origin_name(column.origin)}" if column.origin else None
    key = word_if("COMPOSITE KEY", column.composite_key)
    return words(quote_name(column.name), str(column.type), key, comment(column.comment), origin)


def origin_name(origin: tuple[st.Name, str]) -> str:
    table, column = origin
    return f"{name(table)}.{quote_name(column)}"


def column_definitions(columns: Iterable[st.ColumnDef]) -> str:
    return parenthesis(column_definition(c) for c in columns)
