"""Names and texts as DuckDB's identifiers and strings."""

from __future__ import annotations

from penstock.errors import SqlSemanticError


def quote(name: str) -> str:
    """*name* as DuckDB's identifier."""
    return '"' + _clean(name).replace('"', '""') + '"'


def literal(text: str) -> str:
    """*text* as DuckDB's string."""
    return "'" + _clean(text).replace("'", "''") + "'"


def text_value(text: str) -> str:
    """*text* as DuckDB's expression: NUL, which no statement may have, is computed."""
    if "\0" not in text:
        return literal(text)
    return f"({' || chr(0) || '.join(literal(part) for part in text.split(chr(0)))})"


def _clean(text: object) -> str:
    if not isinstance(text, str) or "\0" in text or not _encodes(text):
        raise SqlSemanticError(
            "a name or text in a query has a character that it may not have", code="E_QUERY"
        )
    return text


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def impossible(what: str) -> SqlSemanticError:
    return SqlSemanticError(
        f"{what} is not possible in a query",
        code="E_QUERY",
        hint="docs/sql-rows.md shows what a query may have",
    )
