"""A better error for a statement that could not be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token

from penstock.errors import SqlSyntaxError
from penstock.sql.dialect import tokenize
from penstock.sql.mistakes.characters import CHARACTERS
from penstock.sql.mistakes.clauses import CLAUSES
from penstock.sql.mistakes.columns import COLUMNS
from penstock.sql.mistakes.durations import DURATIONS
from penstock.sql.mistakes.missing import LAST, MISSING
from penstock.sql.mistakes.place import Place
from penstock.sql.mistakes.spelling import SPELLING
from penstock.sql.mistakes.statements import STATEMENTS
from penstock.sql.mistakes.stream_clauses import STREAM_CLAUSES
from penstock.sql.mistakes.streams import STREAMS
from penstock.sql.mistakes.unclosed import unclosed
from penstock.sql.mistakes.windows import WINDOWS
from penstock.sql.source import Source

#: A longer statement is not looked at again.
MAX_LENGTH = 65_536
#: The first that knows the mistake explains it.
_MISTAKES: tuple[Callable[[Place], SqlSyntaxError | None], ...] = (
    *CHARACTERS,
    *STREAMS,
    *STREAM_CLAUSES,
    *WINDOWS,
    *STATEMENTS,
    *DURATIONS,
    *COLUMNS,
    *CLAUSES,
    *MISSING,
    *SPELLING,
    *LAST,
)


def explain(error: SqlSyntaxError, source: Source, start: int, end: int) -> SqlSyntaxError:
    """Return a better error than *error*, which the statement at [start, end) ends with, or that
    one where nothing more is known.
    """
    if end - start > MAX_LENGTH or error.code != "E_SYNTAX" or not error.line:
        return error
    try:
        tokens = tokenize(source.text[start:end])
    except SqlglotError:
        return unclosed(source, start, end) or error
    index = _index(tokens, source.offset(error.line, error.column) - start)
    place = Place(source, start, end, tokens, index, error)
    for mistake in _MISTAKES:
        found = mistake(place)
        if found is not None:
            return found
    return error


def _index(tokens: Sequence[Token], offset: int) -> int:
    """Return which token ends at or behind *offset*."""
    return next((n for n, token in enumerate(tokens) if token.end >= offset), len(tokens))
