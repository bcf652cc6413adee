"""Mistakes in statements as an editor marks them: pure, errors in, places and names out."""

from __future__ import annotations

import re
from typing import Any

from penstock.errors import PenstockError, SqlError, SqlSemanticError, SqlSyntaxError
from penstock.sql import statements as st

#: how hints name what was probably meant
_NEAREST = re.compile(r'did you mean "?(?P<name>[^"?]+?)"?(?:\(\))?\?')
#: classes whose name is not what the statement begins with
_KINDS: dict[type[st.Statement], str] = {
    st.Query: "SELECT",
    st.InsertSelect: "INSERT",
    st.UseDatabase: "USE",
    st.CreateChildren: "CREATE TABLE",
    st.ShowCreate: "SHOW",
    st.ShowDistribution: "SHOW",
    st.ShowIndexes: "SHOW",
    st.ShowTableTags: "SHOW",
    st.ShowTags: "SHOW",
    st.SteerView: "SYSTEM",
    st.GrantRole: "GRANT",
    st.RevokeTokens: "REVOKE",
}
_WORD = re.compile(r"[A-Z][a-z]*")


def kind_of(statement: st.Statement) -> str:
    """Return the kind of a statement in the words that it begins with: `CREATE STREAM`."""
    known = _KINDS.get(type(statement))
    return known or " ".join(_WORD.findall(type(statement).__name__)).upper()


def describe(error: PenstockError, index: int) -> dict[str, Any]:
    """Return a mistake in the statement with this index, as JSON.

    `line` and `column` count from 1, and are 0 where nobody knows the place; `length` is how many
    characters of that line are to be marked; `nearest` is the name that was probably meant.
    """
    placed = error if isinstance(error, SqlError) else SqlError("")
    found = _NEAREST.search(error.hint)
    return {
        "code": error.code,
        "message": error.message,
        "line": placed.line,
        "column": placed.column,
        "length": _length(placed.snippet),
        "nearest": found["name"] if found is not None else None,
        "hint": error.hint,
        "detail": error.detail,
        "statement": index,
    }


def _length(snippet: str) -> int:
    """Return how many characters the carets of a snippet mark."""
    _, _, marks = snippet.rpartition("\n")
    return max(marks.count("^"), 1)


def shift_up(error: SqlError, lines: int, statement: st.Statement) -> SqlError:
    """Return an error in a text that had *lines* lines of ours and then *statement*, with its place
    in the text that the statement is of.
    """
    line = error.line - lines
    column = error.column
    if line >= 1:
        first = line == 1
        line += statement.line - 1
        column += statement.column - 1 if first else 0
    kind = SqlSyntaxError if isinstance(error, SqlSyntaxError) else SqlSemanticError
    return kind(
        error.message,
        code=error.code,
        detail=error.detail,
        hint=error.hint,
        line=max(line, 0),
        column=column if line >= 1 else 0,
        snippet=error.snippet,
    )
