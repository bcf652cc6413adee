"""Files of sqllogictest's form, read into records. README.md beside this file explains the form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

RESULT = "----"
#: type letters of a query's columns
TYPES = frozenset("TIRDBMX?")
_SORTS = ("nosort", "rowsort")
_ERROR = re.compile(r"statement error(?: (E_[A-Z_|]+))?(?: (.+))?")
_QUERY = re.compile(r"query (\S+)(?: (nosort|rowsort))?(?: (\w+))?")
#: between two values of a line: a tab, or blanks
_GAP = re.compile(r"\t|\s{2,}")
_ONLY = re.compile(r"(onlyif|skipif) (memory|mesh)")


class ScriptError(Exception):
    """A line that the form does not have."""


@dataclass(frozen=True)
class Refusal:
    """A statement must fail: with this code, with words that this pattern finds."""

    code: str
    pattern: str


@dataclass(frozen=True)
class Rows:
    """A query must give these rows; those of queries with one label must be the same."""

    types: str
    rows: tuple[tuple[str, ...], ...]
    sorted: bool = False
    label: str = ""


@dataclass(frozen=True)
class Context:
    """What directives said before a record."""

    database: str = ""
    timezone: str = "UTC"


@dataclass(frozen=True)
class Record:
    """One statement, and what it must do; `expected` is None where it must only succeed."""

    line: int
    sql: str
    expected: Refusal | Rows | None
    context: Context
    #: why it does not do that yet
    fails: str = ""
    #: backends that do not play it
    skipped: frozenset[str] = frozenset()


def read(path: Path) -> list[Record]:
    """Return the records of a file. Raises ScriptError."""
    reader = _Reader(path.name)
    for line, paragraph in _paragraphs(path.read_text(encoding="utf-8")):
        reader.take(line, paragraph)
    reader.finish()
    return reader.records


def _paragraphs(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield what empty lines separate, without comments, each with the number of its first line."""
    begun = 0
    held: list[str] = []
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if line.startswith("#"):
            continue
        if line.strip():
            begun = begun if held else number
            held.append(line.rstrip())
        elif held:
            yield begun, held
            held = []


class _Reader:
    """Holds what directives said of the records that follow."""

    def __init__(self, name: str) -> None:
        self.records: list[Record] = []
        self._name = name
        self._context = Context()
        self._fails = ""
        self._skipped: frozenset[str] = frozenset()

    def take(self, line: int, paragraph: list[str]) -> None:
        """Read a paragraph: directives, and a record behind them if there is one."""
        for i, head in enumerate(paragraph):
            if head.startswith(("statement ", "query ")):
                self._record(line + i, head, paragraph[i + 1 :])
                return
            self._directive(line + i, head)

    def finish(self) -> None:
        if self._fails or self._skipped:
            raise self._error(0, "there is no record behind the last directive")

    def _directive(self, line: int, head: str) -> None:
        word, _, rest = head.partition(" ")
        only = _ONLY.fullmatch(head)
        if word == "database" and rest:
            self._context = Context(rest, self._context.timezone)
        elif word == "timezone" and rest:
            self._context = Context(self._context.database, rest)
        elif word == "fails" and rest:
            self._fails = rest
        elif only is not None:
            kind, backend = only.groups()
            self._skipped = frozenset(
                {"memory", "mesh"} - {backend} if kind == "onlyif" else {backend}
            )
        else:
            raise self._error(line, f"not a directive: {head}")

    def _record(self, line: int, head: str, body: list[str]) -> None:
        expected: Refusal | Rows | None = None
        if head.startswith("query "):
            expected, body = self._rows(line, head, body)
        elif head != "statement ok":
            expected = self._refusal(line, head)
        if not body:
            raise self._error(line, "there is no SQL")
        sql = "\n".join(body)
        self.records.append(Record(line, sql, expected, self._context, self._fails, self._skipped))
        self._fails = ""
        self._skipped = frozenset()

    def _refusal(self, line: int, head: str) -> Refusal:
        match = _ERROR.fullmatch(head)
        if match is None:
            raise self._error(line, f"not a statement: {head}")
        code, pattern = match.groups(default="")
        if not code and not pattern:
            raise self._error(line, "an error has a code or words")
        return Refusal(code, pattern)

    def _rows(self, line: int, head: str, body: list[str]) -> tuple[Rows, list[str]]:
        match = _QUERY.fullmatch(head)
        if match is None or not set(match.group(1)) <= TYPES:
            raise self._error(line, f"not a query: {head}")
        if RESULT not in body:
            raise self._error(line, f"a query has {RESULT} and its rows")
        types, sort, label = match.groups(default="")
        cut = body.index(RESULT)
        rows = tuple(tuple(_GAP.split(text.strip())) for text in body[cut + 1 :])
        for row in rows:
            if len(row) != len(types):
                raise self._error(line, f"{len(row)} values for {len(types)} columns: {row}")
        return Rows(types, rows, sort == "rowsort", label), body[:cut]

    def _error(self, line: int, message: str) -> ScriptError:
        return ScriptError(f"{self._name}:{line}: {message}")
