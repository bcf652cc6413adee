"""INSERT: a scanner of its own, because a statement may carry tens of thousands of rows.

It reads the text with one regular expression per literal instead of tokens and trees; a megabyte of
rows takes a fraction of a second. The grammar is `INSERT INTO (table [USING stable [(tags)] TAGS
(…)] [(columns)] VALUES (…) (…) …)…`, or `INSERT INTO table [(columns)] SELECT …`, whose SELECT is
read by the parser of all other statements.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal, NoReturn

from penstock.sql.nodes import UNITS
from penstock.sql.parsers.cursor import MAX_YEARS, NO_PLACEHOLDER, negate, number, too_long
from penstock.sql.plan import Duration
from penstock.sql.source import Source
from penstock.sql.statements import (
    Insert,
    InsertPart,
    InsertSelect,
    Name,
    Placeholder,
    Query,
    RelativeTime,
    Value,
)
from penstock.sql.words import RESERVED, meant

#: Possessive, as is every repeat that something must follow: a long run of blanks costs its length,
#: never its square.
_BLANK = r"(?:\s++|--[^\n]*+(?:\n|\Z)|/\*.*?\*/)*+"
_SKIP = re.compile(_BLANK, re.DOTALL)
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[^\W\d]\w*")
_QUOTED = re.compile(r"`((?:[^`]|``)*)`")
#: One literal and, when it is followed by nothing but "," or ")", that too: the common case costs
#: one match.
_LITERAL = re.compile(
    r"""\s*+(?:
        (?P<int>[-+]?[0-9]{1,19}(?![\w.]))
      | '(?P<one>[^'\\]*)'(?!')
      | (?P<real>[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?(?![\w.]))
      | (?P<word>[A-Za-z_]+(?![\w.]))
      | "(?P<two>[^"\\]*)"(?!")
      | '(?P<hard1>(?:[^'\\]|\\.|'')*+)'(?!')
      | "(?P<hard2>(?:[^"\\]|\\.|"")*+)"(?!")
    )\s*+(?P<next>[,)])?""",
    re.VERBOSE | re.DOTALL,
)
_ROW = re.compile(r"\s*+(?:,\s*+)?\(")
_STEP = re.compile(
    rf"{_BLANK}([-+]){_BLANK}([0-9]{{1,19}})([{''.join(UNITS)}{''.join(UNITS).upper()}])(?!\w)",
    re.DOTALL,
)
_PLACEHOLDER = re.compile(r"\?|:([^\W\d]\w*)")
_PAREN = re.compile(rf"{_BLANK}\({_BLANK}\)", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)|''|\"\"", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "\\": "\\", "'": "'", '"': '"'}
_VALUE_HINT = "a number, a string in quotes, NULL, TRUE, FALSE, or a time such as now + 1s"
_WORDS: dict[str, Value] = {"NULL": None, "TRUE": True, "FALSE": False}


def parse_insert(
    source: Source, start: int, end: int, query: Callable[[int], Query]
) -> Insert | InsertSelect:
    """The INSERT at [start, end) of *source*; *query* reads a SELECT from an offset to the end."""
    scanner = _Scanner(source, start, end)
    scanner.keyword("INSERT")
    scanner.keyword("INTO")
    table, columns = scanner.into()
    if scanner.peek() in ("SELECT", "WITH"):
        select = query(scanner.at)
        return InsertSelect(
            table=table,
            columns=columns,
            select=select,
            source=source,
            start=start,
            end=end,
            placeholders=select.placeholders,
        )
    parts = [scanner.part(table, columns)]
    while scanner.skip() < end:
        parts.append(scanner.part(*scanner.into()))
    return Insert(
        parts=tuple(parts),
        source=source,
        start=start,
        end=end,
        placeholders=tuple(scanner.placeholders),
    )


class _Scanner:
    """Position in the text and the grammar of INSERT."""

    def __init__(self, source: Source, start: int, end: int) -> None:
        self.source = source
        self.text = source.text
        self.at = start
        self.end = end
        self.placeholders: list[Placeholder] = []

    def fail(self, message: str, at: int | None = None, hint: str = "") -> NoReturn:
        at = self.at if at is None else at
        if at >= self.end:
            raise self.source.syntax_error(
                f"{message}, but the statement ends", self.end, hint=hint
            )
        if _PLACEHOLDER.match(self.text, at, self.end):
            hint = NO_PLACEHOLDER
        word = _WORD.match(self.text, at, self.end)
        raise self.source.syntax_error(message, at, len(word.group()) if word else 1, hint=hint)

    # ---------------------------------------------------------------- words and names

    def skip(self) -> int:
        """Step over blanks and comments."""
        match = _SKIP.match(self.text, self.at, self.end)
        self.at = match.end() if match else self.at
        return self.at

    def peek(self) -> str:
        """The next word in upper case, or the next character."""
        self.skip()
        word = _WORD.match(self.text, self.at, self.end)
        return word.group().upper() if word else self.text[self.at : min(self.at + 1, self.end)]

    def keyword(self, word: str) -> None:
        if self.peek() != word:
            self.fail(f"expected {word}")
        self.at += len(word)

    def identifier(self, shown: str) -> str:
        self.skip()
        quoted = _QUOTED.match(self.text, self.at, self.end)
        if quoted:
            if not quoted.group(1):
                self.fail("a name cannot be empty")
            self.at = quoted.end()
            return quoted.group(1).replace("``", "`")
        word = _WORD.match(self.text, self.at, self.end)
        if word is None:
            self.fail(f"expected {shown}")
        if word.group().upper() in RESERVED:
            self.fail(
                f"expected {shown}, found the reserved word {word.group().upper()}",
                hint=f"put it in backticks: `{word.group()}`",
            )
        self.at = word.end()
        return word.group()

    def name(self, shown: str) -> Name:
        offset = self.skip()
        first = self.identifier(shown)
        if self.peek() == ".":
            self.at += 1
            return Name(self.identifier(shown), first, offset)
        return Name(first, None, offset)

    def names(self, shown: str) -> tuple[str, ...]:
        """`(name, …)`, each once."""
        self.at += 1
        found = [self.identifier(shown)]
        seen = {found[0].lower()}
        while self.peek() == ",":
            self.at += 1
            offset = self.skip()
            found.append(self.identifier(shown))
            if found[-1].lower() in seen:
                self.fail(f'"{found[-1]}" is given twice', offset)
            seen.add(found[-1].lower())
        if self.peek() != ")":
            self.fail('expected "," or ")"')
        self.at += 1
        return tuple(found)

    # ---------------------------------------------------------------- one table

    def into(self) -> tuple[Name, tuple[str, ...] | None]:
        """A table, and the columns that stand behind it."""
        return self.name("a table name"), (
            self.names("a column name") if self.peek() == "(" else None
        )

    def part(self, table: Name, columns: tuple[str, ...] | None) -> InsertPart:
        """The rows of one table. Columns may stand before USING too, as TDengine has it."""
        stable: Name | None = None
        tag_names: tuple[str, ...] | None = None
        tag_values: tuple[Value, ...] = ()
        if self.peek() == "USING":
            self.at += len("USING")
            stable = self.name("a supertable name")
            tag_names = self.names("a tag name") if self.peek() == "(" else None
            self.keyword("TAGS")
            offset = self.skip()
            tag_values = self.values()
            if tag_names is not None and len(tag_names) != len(tag_values):
                self.fail(
                    f"found {len(tag_values)} tag values for {len(tag_names)} tag names", offset
                )
            if columns is None and self.peek() == "(":
                columns = self.names("a column name")
        word = self.peek()
        if word not in ("VALUES", "VALUE"):
            if word == "FILE":
                self.fail(
                    "rows from a file are not read here",
                    hint="use the client or the HTTP interface",
                )
            self.fail(
                "expected VALUES",
                hint="" if word in ("", "(") else meant(word, ("VALUES", "USING")),
            )
        self.at += len(word)
        rows, offsets = self._rows(columns)
        return InsertPart(table, rows, columns, stable, tag_names, tag_values, offsets)

    def _rows(
        self, columns: tuple[str, ...] | None
    ) -> tuple[tuple[tuple[Value, ...], ...], tuple[int, ...]]:
        if self.peek() != "(":
            self.fail('expected "(" and a row')
        width = None if columns is None else len(columns)
        rows: list[tuple[Value, ...]] = []
        offsets: list[int] = []
        while True:
            match = _ROW.match(self.text, self.at, self.end)
            if match is not None:
                self.at = match.end() - 1
            elif not self._skip_to_row():
                return tuple(rows), tuple(offsets)
            offset = self.at
            row = self.values()
            width = len(row) if width is None else width
            if len(row) != width:
                wanted = "columns" if columns is not None else "values in the first row"
                self.fail(f"this row has {len(row)} values, there are {width} {wanted}", offset)
            offsets.append(offset)
            rows.append(row)

    def _skip_to_row(self) -> bool:
        """Go on to the next row behind comments; return False, and stay, when there is none.

        Comments between rows are rare enough to pay for a second look.
        """
        before = self.at
        if self.peek() == ",":
            self.at += 1
            if self.peek() != "(":
                self.fail("expected another row")
        if self.peek() == "(":
            return True
        self.at = before
        return False

    # ---------------------------------------------------------------- values

    def values(self) -> tuple[Value, ...]:
        """`(value, …)`"""
        if self.peek() != "(":
            self.fail('expected "("')
        self.at += 1
        found: list[Any] = []  # placeholders as well, until parameters are bound
        text = self.text
        end = self.end
        match_literal = _LITERAL.match
        add = found.append
        while True:
            match = match_literal(text, self.at, end)
            if match is None or match.group("next") is None:
                add(self._slow())
                follower = self.peek()
                if follower not in (",", ")"):
                    self.fail('expected "," or ")"')
                self.at += 1
                if follower == ")":
                    return tuple(found)
                continue
            integer = match.group("int")
            if integer is not None:
                add(int(integer))
            else:
                add(self._plain(match))
            self.at = match.end()
            if match.group("next") == ")":
                return tuple(found)

    def _plain(self, match: re.Match[str]) -> Value:
        """The value of a literal other than a short whole number."""
        one, two, real, word, hard1, hard2 = match.group(
            "one", "two", "real", "word", "hard1", "hard2"
        )
        if one is not None:
            return one
        if two is not None:
            return two
        if real is not None:
            return self._real(real, match.start("real"))
        if word is not None:
            upper = word.upper()
            if upper in _WORDS:
                return _WORDS[upper]
            if upper in ("NOW", "TODAY"):
                return RelativeTime(upper.lower())
            self.fail(
                "expected a value",
                match.start("word"),
                _VALUE_HINT,
            )
        return _unescape(hard1 if hard1 is not None else hard2, "'" if hard1 is not None else '"')

    def _real(self, text: str, at: int) -> int | float | Decimal:
        digits = text.lstrip("+-")
        try:
            value = number(digits)
        except (ValueError, ArithmeticError):
            self.fail("this number is out of range", at)
        return negate(value) if text[0] == "-" else value

    def _slow(self) -> Value | Placeholder:
        """A value followed by something else than "," or ")": a time with steps, a call, or a
        comment; or a placeholder.
        """
        offset = self.skip()
        holder = _PLACEHOLDER.match(self.text, self.at, self.end)
        if holder is not None:
            self.at = holder.end()
            self.placeholders.append(Placeholder(holder.group(1) or "", *holder.span()))
            return self.placeholders[-1]
        match = _LITERAL.match(self.text, self.at, self.end)
        if match is None:
            self._fail_value()
        integer = match.group("int")
        base: Value = int(integer) if integer is not None else self._plain(match)
        groups = ("int", "one", "two", "real", "word", "hard1", "hard2")
        inner = max(match.end(g) for g in groups)
        # A string's group ends before its quote.
        self.at = inner + (match.group("int", "real", "word") == (None, None, None))
        if isinstance(base, RelativeTime):
            call = _PAREN.match(self.text, self.at, self.end)
            self.at = call.end() if call else self.at
        steps = self._steps()
        if not steps:
            return base
        if isinstance(base, RelativeTime):
            return RelativeTime(base.base, steps, base.literal)
        if isinstance(base, bool) or not isinstance(base, str | int):
            self.fail("arithmetic is only allowed on times", offset)
        return RelativeTime(base, steps, isinstance(base, str))

    def _fail_value(self) -> NoReturn:
        if self.text[self.at : self.at + 1] in "'\"" and self.at < self.end:
            self.fail("this string is never closed")
        self.fail("expected a value", hint=_VALUE_HINT)

    def _steps(self) -> tuple[tuple[Literal[1, -1], Duration], ...]:
        steps: list[tuple[Literal[1, -1], Duration]] = []
        while self.peek() in ("+", "-"):
            match = _STEP.match(self.text, self.at, self.end)
            if match is None:
                self.at += 1
                self.skip()
                self.fail(
                    "expected a length of time such as 10s",
                    hint=f"a whole number and one unit of {' '.join(UNITS)}",
                )
            unit: Any = match.group(3).lower()
            length = Duration(int(match.group(2)), unit)
            if too_long(length):
                self.fail(
                    f"a length of time may have {MAX_YEARS} years",
                    match.start(2),
                    "use a shorter time",
                )
            steps.append((1 if match.group(1) == "+" else -1, length))
            self.at = match.end()
        return tuple(steps)


def _unescape(text: str, quote: str) -> str:
    r"""The content of a string with escapes: `\n`, `\'`, doubled quotes; an unknown escape keeps
    its backslash.
    """

    def one(match: re.Match[str]) -> str:
        if match.group(1) is None:
            return quote if match.group()[0] == quote else match.group()
        return _ESCAPED.get(match.group(1), match.group())

    return _ESCAPE.sub(one, text)
