"""Text in, statements out: cuts a text at its semicolons and gives each piece to the grammar of its
first words.

Nothing but `SqlError` leaves `parse`: sqlglot's own errors, and running out of stack, become syntax
errors. An unknown statement is an error that lists what is known; there is no statement that is
carried along as text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from sqlglot.errors import SqlglotError

from penstock.errors import SqlError, SqlSyntaxError
from penstock.rows.parameters import Parameters
from penstock.sql.dialect import tokenize
from penstock.sql.mistakes import explain, unclosed
from penstock.sql.parameters import bind
from penstock.sql.parsers.insert import parse_insert
from penstock.sql.parsers.show import ShowParser
from penstock.sql.source import Source
from penstock.sql.statements import CreateStream, Explain, Query, Statement
from penstock.sql.words import meant

#: Longer texts are refused; rows in such numbers belong into the binary ways in.
MAX_TEXT = 1_048_576
#: Statements other than INSERT are limited more tightly: their trees cost far more than their text.
MAX_PLAIN = 262_144

#: Runs of text without anything special; strings, backticked names and comments whole (or to the
#: end if never closed).
_PIECE = re.compile(
    r"""[^;'"`/\-]+
    | '(?:[^'\\]|\\.|'')*+(?:'|\Z) | "(?:[^"\\]|\\.|"")*+(?:"|\Z) | `[^`]*(?:`|\Z) | --[^\n]*
    | /\*.*?(?:\*/|\Z) | [/\-]""",
    re.VERBOSE | re.DOTALL,
)
_BLANK = re.compile(r"(?:\s++|--[^\n]*+(?:\n|\Z)|/\*.*?\*/)*+", re.DOTALL)
_FIRST = re.compile(r"[A-Za-z_]+")


def parse(
    text: str, parameters: Parameters | None = None, timezone: str = "UTC"
) -> list[Statement]:
    """All statements of *text*, in order.

    Args:
        text: the statements.
        parameters: values for the placeholders of its only statement.
        timezone: of times among them that have none.

    Raises:
        SqlError: it cannot be read, or *parameters* do not fit.
    """
    statements = read(text)
    if parameters and len(statements) > 1:
        raise Source(text).syntax_error(
            "parameters are for one statement, a second one begins",
            statements[1].start,
            code="E_SEVERAL_STATEMENTS",
            hint="send each statement with its own parameters",
        )
    return [bind(statement, parameters, timezone) for statement in statements]


def read(text: str) -> list[Statement]:
    """All statements of *text* with placeholders in them, which nothing but `bind` understands.
    Raises SqlError.
    """
    source = Source(text)
    _check_length(text)
    try:
        return [_parse_or_explain(source, start, end) for start, end in pieces(text)]
    except RecursionError:
        raise SqlSyntaxError("the statement is nested too deeply") from None


def read_each(
    text: str, timezone: str = "UTC"
) -> Iterator[tuple[tuple[int, int], Statement | SqlError]]:
    """Yield [start, end) of each statement of *text* with the statement, or with why it is none: a
    mistake in one hides none in the others.

    Raises:
        SqlError: the text is too long.
    """
    source = Source(text)
    _check_length(text)
    for start, end in pieces(text):
        try:
            yield (start, end), bind(_parse_or_explain(source, start, end), None, timezone)
        except SqlError as error:
            yield (start, end), error
        except RecursionError:
            yield (start, end), SqlSyntaxError("the statement is nested too deeply")


def _check_length(text: str) -> None:
    if len(text) > MAX_TEXT:
        raise SqlSyntaxError(
            f"the text has {len(text)} characters, the limit is {MAX_TEXT}",
            code="E_TOO_LONG",
            hint="send rows in several statements",
        )


def parse_one(text: str) -> Statement:
    """The only statement of *text*."""
    statements = parse(text)
    if len(statements) == 1:
        return statements[0]
    if not statements:
        raise SqlSyntaxError("there is no statement in this text")
    raise Source(text).syntax_error(
        "one statement is expected here, a second one begins",
        statements[1].start,
        hint="send them one by one",
    )


def pieces(text: str) -> Iterator[tuple[int, int]]:
    """[start, end) of every statement: without blanks and comments before it, blanks after it and
    its semicolon.
    """
    at = 0
    while True:
        at = _skip_blank(text, at)
        if at >= len(text):
            return
        end = at
        while end < len(text) and text[end] != ";":
            match = _PIECE.match(text, end)
            end = match.end() if match else end + 1
        stop = len(text[at:end].rstrip()) + at
        if stop > at:
            yield at, stop
        at = end + 1


def _skip_blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _parse_or_explain(source: Source, start: int, end: int) -> Statement:
    """The statement at [start, end); an error says what was meant, where that is known."""
    try:
        return _statement(source, start, end)
    except SqlSyntaxError as error:
        raise explain(error, source, start, end) from None


def _statement(source: Source, start: int, end: int) -> Statement:
    first = _FIRST.match(source.text, start, end)
    word = first.group().upper() if first else ""
    if word == "INSERT":
        return parse_insert(source, start, end, lambda at: _select(source, at, end))
    if end - start > MAX_PLAIN:
        raise source.syntax_error(
            f"a statement other than INSERT may have {MAX_PLAIN} characters",
            start,
            code="E_TOO_LONG",
        )
    try:
        tokens = tokenize(source.text[start:end])
    except SqlglotError:
        opened = unclosed(source, start, end)
        raise opened or source.syntax_error("this text cannot be read", start) from None
    parser = StatementParser(tokens, source, start, end)
    statement = parser.statement()
    parser.expect_end()
    return replace(
        statement,
        source=source,
        start=start,
        end=end,
        notices=tuple(parser.notices),
        placeholders=parser.placeholders(),
    )


def _select(source: Source, start: int, end: int) -> Query:
    """The SELECT of an INSERT."""
    statement = _statement(source, start, end)
    assert isinstance(statement, Query)
    return statement


class StatementParser(ShowParser):
    """One statement of any family but INSERT."""

    def statement(self) -> Statement:
        families: dict[str, Callable[[], Statement]] = {
            "SELECT": self._query_statement,
            "WITH": self._query_statement,
            "CREATE": self._create,
            "ALTER": self._alter,
            "DROP": self.drop,
            "USE": self.use,
            "DELETE": self.delete,
            "DESCRIBE": self.describe,
            "DESC": self.describe,
            "SHOW": self.show,
            "EXPLAIN": self._explain,
            "PAUSE": self.pause,
            "RESUME": self.resume,
            "FLUSH": self.flush,
            "RECALCULATE": self.recalculate,
            "SYSTEM": self.system,
            "GRANT": self.grant,
            "REVOKE": self.revoke,
        }
        word = self.word()
        if self.source.text[self.offset : self.offset + 1] == "(":
            return self._query_statement()
        if word not in families:
            self.fail(
                "this is no statement", hint=meant(word or self.token.text, (*families, "INSERT"))
            )
        if word not in ("SELECT", "WITH"):
            self.index += 1
        return families[word]()

    def _query_statement(self) -> Query:
        return Query(query=self.query())

    def _create(self) -> Statement:
        or_replace = self.take("OR", "REPLACE")
        if not or_replace and self.take("STREAM", "TABLE"):
            return self.create_stream_table()
        if self.take("STREAM"):
            return self.create_stream(or_replace)
        if or_replace:
            aggregate = self.take("AGGREGATE")
            if not self.take("FUNCTION"):
                self.fail("only CREATE OR REPLACE STREAM and FUNCTION are known")
            return self.create_function(or_replace=True, aggregate=aggregate)
        if self.take("EXTERNAL", "STREAM"):
            return self.create_external_stream()
        if self.take("MATERIALIZED", "VIEW"):
            return self.create_view()
        if self.take("USER"):
            return self.create_user()
        if self.take("ROLE"):
            return self.create_role()
        return self.create()

    def _alter(self) -> Statement:
        word = self.one_of(
            ("DATABASE", "TABLE", "STABLE", "STREAM", "USER", "VTABLE"), "what to alter"
        )
        if word == "USER":
            return self.alter_user()
        if word == "DATABASE":
            return self.alter_database()
        if word == "STREAM":
            return self.alter_stream()
        return self.alter_table(stable=word == "STABLE")

    def _explain(self) -> Statement:
        start = self.offset
        if self.take("CREATE"):
            replaced = self.take("OR", "REPLACE")
            self.expect("STREAM")
            inner = self.create_stream(replaced)
            if not isinstance(inner, CreateStream):
                self.fail("EXPLAIN knows CREATE STREAM … AS and queries", index=0)
        elif self.word() in ("SELECT", "WITH"):
            inner = self._query_statement()
        else:
            self.fail("EXPLAIN knows CREATE STREAM … AS and queries")
        return Explain(statement=replace(inner, source=self.source, start=start, end=self.stop))
