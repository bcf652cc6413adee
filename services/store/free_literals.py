"""Literals of a query that its plan need not know: compared with a column in a WHERE, they decide
nothing but which rows there are.

Everything else that is written stays part of the plan: the length of a window, LIMIT, an argument.
A parameter is as free as a literal in its place would be.
A time is read anew at each run, in the zone of the query and the unit of the column.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from penstock.catalog.model import Table
from penstock.duck.quoting import text_value
from penstock.sql.compile.constants import ticks_of
from penstock.sql.free_literals import mark_free
from penstock.sql.query_texts import MOMENT, REAL, TEXT, WHOLE, QueryText
from penstock.sql.source import mark
from penstock.sql.source_names import TIME_ALIASES
from penstock.types import TIME_LIMITS

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_WHOLE_NUMBERS = frozenset(
    kind + sign for kind in ("TINYINT", "SMALLINT", "INT", "BIGINT") for sign in ("", " UNSIGNED")
)
_TEXTS = frozenset(("VARCHAR", "NCHAR"))
#: kind of a literal → kinds of the columns beside which it says nothing but a value
_BESIDE = {
    TEXT: _TEXTS | {"TIMESTAMP"},
    WHOLE: _WHOLE_NUMBERS | {"TIMESTAMP", "DOUBLE"},
    REAL: frozenset(("FLOAT", "DOUBLE")),
    MOMENT: frozenset(("TIMESTAMP",)),
}
#: values that stand for all while a plan is made. They are odd, so that a plan which depends on
#: them is found out
_TIME_STAND_IN = "1971-03-05T07:11:13.017Z"
_STAND_INS = {TEXT: "7919 'odd' $1", WHOLE: "7919", REAL: "7919.0625"}
#: what stands for a value in a tree: `TIMESTAMP 'text'` is what a time among parameters becomes
_VALUES = (exp.Literal, exp.Cast)
_NUMBER = re.compile(r"\$([1-9][0-9]{0,3})\b")

#: a value for DuckDB: the ticks of a time, a number, a text
Value = int | float | str
#: finds what a name in FROM means; None: nothing that counts here
FindTable = Callable[[exp.Table], Table | None]


@dataclass(frozen=True)
class FreeLiteral:
    """`place`: among the literals of the text; `time`: the unit of a time that is written as text;
    "" for others.
    """

    place: int
    kind: str
    time: str = ""

    @property
    def stand_in(self) -> str:
        """A value that stands for all."""
        return _TIME_STAND_IN if self.time else _STAND_INS[self.kind]

    def value(self, literal: str, timezone: str) -> Value | None:
        """Return the value of what is written in its place; None: it has none."""
        if self.time:
            return self._ticks(literal[1:-1], timezone)
        if self.kind == TEXT:
            return literal[1:-1]
        return int(literal) if self.kind == WHOLE else float(literal)

    def printed(self, literal: str, timezone: str) -> str:
        """Return what a plan of that one value has in its place."""
        if self.time:
            return str(self.value(literal, timezone))
        if self.kind == TEXT:
            return text_value(literal[1:-1])
        return literal if self.kind == WHOLE else f"{literal}e0"

    def _ticks(self, text: str, timezone: str) -> int | None:
        ticks = ticks_of(text, self.time, timezone)
        low, high = TIME_LIMITS[self.time]
        # a TIMESTAMP beyond the limits is NULL
        return None if ticks is None or not low <= ticks <= high else ticks


def values_of(
    free: Sequence[FreeLiteral], text: QueryText, timezone: str
) -> tuple[Value, ...] | None:
    """Return the values of the free literals of a text; None: one has none."""
    values = [one.value(text.literals[one.place], timezone) for one in free]
    known = tuple(value for value in values if value is not None)
    return known if len(known) == len(values) else None


def put_numbers(query: exp.Query, free: Sequence[FreeLiteral], text: QueryText) -> exp.Query:
    """Return *query* with the free literals marked as such, and stand-ins for their values."""
    spans = text.spans
    numbers = {spans[one.place]: number for number, one in enumerate(free, 1)}
    tree = query.copy()
    for node in list(tree.find_all(*_VALUES)):
        number = numbers.get(_span(node))
        if number is not None:
            one = free[number - 1]
            literal = exp.Literal(this=one.stand_in, is_string=one.kind in (TEXT, MOMENT))
            mark(literal, *_span(node))
            mark_free(literal, number)
            node.replace(literal)
    return tree


def numbers_in(texts: Sequence[str]) -> set[int]:
    """Return the numbers of the free literals that DuckDB's *texts* have."""
    return {int(number) for text in texts for number in _NUMBER.findall(text)}


def put_values(text: str, free: Sequence[FreeLiteral], given: QueryText, timezone: str) -> str:
    """Return DuckDB's *text* as the plan of one text has it, which is *given*."""

    def write(match: re.Match[str]) -> str:
        number = int(match[1])
        if number > len(free):
            return match[0]
        one = free[number - 1]
        return one.printed(given.literals[one.place], timezone)

    return _NUMBER.sub(write, text)


# ---------------------------------------------------------------- which they are


def find_free(query: exp.Query, text: QueryText, find_table: FindTable) -> tuple[FreeLiteral, ...]:
    """Return the free literals of a query, in their order."""
    written = Counter(_span(value) for value in query.find_all(*_VALUES))
    found = _find_candidates(query, text, find_table)
    # a name of WITH is written out, so a literal may stand in several places of a tree
    return tuple(
        found[span][0]
        for span in sorted(found)
        if len(found[span]) == written[span] and len(set(found[span])) == 1
    )


def _find_candidates(
    query: exp.Query, text: QueryText, find_table: FindTable
) -> dict[tuple[int, int], list[FreeLiteral]]:
    """Return what each literal is wherever it stands beside a column, by its span in the text."""
    places = {span: place for place, span in enumerate(text.spans)}
    found: dict[tuple[int, int], list[FreeLiteral]] = {}
    for select in query.find_all(exp.Select):
        for value, kind, precision in _compared(select, find_table):
            span = _span(value)
            place = places.get(span)
            if place is None or kind not in _BESIDE.get(text.kinds[place], ()):
                continue
            is_time = kind == "TIMESTAMP" and text.kinds[place] in (TEXT, MOMENT)
            one = FreeLiteral(place, text.kinds[place], precision if is_time else "")
            found.setdefault(span, []).append(one)
    return found


def _span(node: exp.Expr) -> tuple[int, int]:
    return node.meta.get("start", -1), node.meta.get("end", -1)


def _compared(select: exp.Select, find_table: FindTable) -> Iterator[tuple[exp.Expr, str, str]]:
    """Yield the values beside a column in WHERE, with the column's type and the unit of its
    times.
    """
    where = select.args.get("where")
    if where is None:
        return
    columns = _Columns(select, find_table)
    for first, second in _pairs(where.this):
        column, value = (second, first) if isinstance(first, _VALUES) else (first, second)
        if isinstance(column, exp.Column) and isinstance(value, _VALUES):
            kind, precision = columns.type_of(column)
            yield value, kind, precision


def _pairs(condition: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """Yield the sides of the comparisons that a condition is made of."""
    pending = [condition]
    while pending:
        node = pending.pop()
        if isinstance(node, exp.And | exp.Or):
            pending += [node.this, node.expression]
        elif isinstance(node, exp.Not | exp.Paren):
            pending.append(node.this)
        elif isinstance(node, _COMPARISONS):
            yield node.this, node.expression
        elif isinstance(node, exp.Between):
            yield node.this, node.args["low"]
            yield node.this, node.args["high"]
        elif isinstance(node, exp.In):
            yield from ((node.this, item) for item in node.expressions)


class _Columns:
    """Types of the columns in the tables of one SELECT."""

    def __init__(self, select: exp.Select, find_table: FindTable) -> None:
        clause = select.args.get("from_")
        joins = select.args.get("joins") or []
        sources = [*([clause.this] if clause is not None else []), *(join.this for join in joins)]
        tables = [source for source in sources if isinstance(source, exp.Table)]
        self._tables = {table.alias_or_name.lower(): find_table(table) for table in tables}
        self._is_alone = len(sources) == 1
        # a name of the select list may be meant instead of a column
        self._aliases = {
            item.alias.lower() for item in select.expressions if isinstance(item, exp.Alias)
        }

    def type_of(self, column: exp.Column) -> tuple[str, str]:
        """Return the type of a column and the unit of its times; ("", ""): nobody knows."""
        name = column.name.lower()
        if name in self._aliases or column.args.get("db") is not None:
            return "", ""
        alias = column.table.lower()
        if not alias and self._is_alone:
            alias = next(iter(self._tables), "")
        table = self._tables.get(alias)
        return ("", "") if table is None else (_kinds(table).get(name, ""), table.precision)


def _kinds(table: Table) -> dict[str, str]:
    kinds = {"tbname": "VARCHAR"} | dict.fromkeys(TIME_ALIASES, "TIMESTAMP")
    return kinds | {c.name.lower(): c.type.kind for c in (*table.columns, *table.tags)}
