"""SELECTs that were read before, by their text: of one that the store answers, this gateway needs
the tables alone, for rights and for its own writes. The store reads the text itself.

Texts that differ only in values beside comparisons (`ts >= '2026-03-01'`) name the same tables and
can be read or not for the same reasons, so one of them is read for all.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from sqlglot import exp

from gateway.information.scope import is_own
from penstock.rows.parameters import Parameters
from penstock.sql import statements as st
from penstock.sql.parameters import values_of
from penstock.sql.parser import read
from penstock.sql.query_texts import OTHER, QueryText, cut_text
from penstock.sql.source import Source

K = TypeVar("K")
V = TypeVar("V")
#: (database, name) as it is written; "" is the request's database
TableName = tuple[str, str]
#: longest text that is remembered
_LONGEST = 4096
#: texts that are remembered
_MOST = 1024
_COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In)
#: what a text has around its literals, and their kinds
_Shape = tuple[tuple[str, ...], str]
_Key = tuple[_Shape, tuple[str | None, ...]]


@dataclass(frozen=True, kw_only=True)
class KnownSelect(st.Statement):
    """A SELECT that only the store need read."""

    tables: tuple[TableName, ...]


class KnownSelects:
    """Event loop only."""

    def __init__(self) -> None:
        #: which literals of a text are values that change nothing here
        self._free: OrderedDict[_Shape, tuple[int, ...]] = OrderedDict()
        self._known: OrderedDict[_Key, KnownSelect] = OrderedDict()

    def find(
        self, text: str, database: str | None, parameters: Parameters | None, timezone: str
    ) -> KnownSelect | None:
        """Return the SELECT that *text* is; None: it must be read.

        Args:
            database: the request's.
            parameters: for its placeholders; they are checked and not bound.
            timezone: of times without one.

        Raises:
            SqlSemanticError: *parameters* do not fit.
        """
        if len(text) > _LONGEST:
            return None
        cut = cut_text(text)
        shape = cut.between, cut.kinds
        free = _look_up(self._free, shape)
        known = None if free is None else _look_up(self._known, (shape, cut.without(free)))
        if known is None or bool(known.placeholders) != bool(parameters):
            return None
        if is_own(database) and any(not home for home, _ in known.tables):
            return None
        # a value that is free may be longer than the one that was read
        end = known.end + len(text) - len(known.source.text)
        found = replace(known, source=Source(text), end=end)
        if found.placeholders:
            values_of(found, parameters, timezone)
        return found

    def note(self, text: str, statements: Sequence[st.Statement], bound: bool) -> None:
        """Remember what was read of a text.

        Args:
            bound: it has placeholders, and values were put into them.
        """
        statement = statements[0] if len(statements) == 1 else None
        if not isinstance(statement, st.Query) or len(text) > _LONGEST:
            return
        tables = tables_of(statement.query)
        if not _is_for_store(statement.query, tables):
            return
        cut = cut_text(text)
        # where a text has placeholders, their places must stay what they are
        free = () if bound else _find_free(statement.query, cut)
        shape = cut.between, cut.kinds
        if self._free.get(shape, free) != free:
            return
        known = KnownSelect(
            source=statement.source,
            start=statement.start,
            end=statement.end,
            placeholders=read(text)[0].placeholders if bound else (),
            tables=tables,
        )
        _put(self._free, shape, free)
        _put(self._known, (shape, cut.without(free)), known)


def tables_of(query: exp.Query) -> tuple[TableName, ...]:
    """Return the tables that a query names, each once."""
    return tuple(dict.fromkeys((t.db, t.name) for t in query.find_all(exp.Table)))


def opens_windows(query: exp.Query) -> bool:
    """Tell if a select of the query has OPEN WINDOWS."""
    return any(s.args.get("open_windows") is not None for s in query.find_all(exp.Select))


def _is_for_store(query: exp.Query, tables: Sequence[TableName]) -> bool:
    """Tell if the store answers a query, unless the request's database is of lists."""
    lists = any(is_own(database) for database, _ in tables)
    return bool(tables) and not lists and not opens_windows(query)


def _find_free(query: exp.Query, text: QueryText) -> tuple[int, ...]:
    """Return the places of the literals that are values in comparisons: neither names nor
    lengths, and read alike whatever they are.
    """
    places = {span: place for place, span in enumerate(text.spans)}
    found = set()
    for literal in query.find_all(exp.Literal):
        place = places.get((literal.meta.get("start", -1), literal.meta.get("end", -1)))
        if place is not None and isinstance(literal.parent, _COMPARED):
            found.add(place)
    return tuple(sorted(place for place in found if text.kinds[place] != OTHER))


def _look_up(known: OrderedDict[K, V], key: K) -> V | None:
    found = known.get(key)
    if found is not None:
        known.move_to_end(key)
    return found


def _put(known: OrderedDict[K, V], key: K, value: V) -> None:
    known[key] = value
    known.move_to_end(key)
    if len(known) > _MOST:
        known.popitem(last=False)
