"""Queries that were planned before, by their text: what DuckDB is given for them, but for the rows
of their tables, which are looked for anew each time, and for the values of free literals
(`services.store.free_literals`): texts that differ in those alone have one plan.

A plan holds for as long as the catalog and its tables are the same. Nothing is remembered of a
query whose text for DuckDB depends on its moment, or whose rows were fetched before DuckDB ran:
windows of the kernels, tables of other deployments.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from penstock.rows.parameters import Parameters
from penstock.sql.bound_texts import cut_bound_text
from penstock.sql.functions.duckdb import Helper
from penstock.sql.query_texts import QueryText, cut_text
from penstock.sql.relational import Output, QueryPlan
from services.store.binding import Context
from services.store.free_literals import (
    FreeLiteral,
    Value,
    numbers_in,
    put_values,
    values_of,
)
from services.store.resolve import ResolvedTable
from services.store.scope import ReadScope, RowCondition
from services.store.translate import query

V = TypeVar("V")
#: longest text that is remembered
_LONGEST = 4096
#: texts that are remembered: a wall of dashboards has a text for each table and panel
_MOST = 1024
#: nanoseconds to a moment at which `now` and `today()` are other times
_LATER = 400 * 86_400 * 1_000_000_000


@dataclass(frozen=True)
class Reading:
    """What a query reads of a table.

    Args:
        prefix: of the names under which its rows are registered.
        condition: of the rows that it needs.
        places: virtual columns, see `services.store.relation.PLACES`.
    """

    prefix: str
    found: ResolvedTable
    condition: RowCondition
    places: tuple[str, ...]

    def scope(self, values: Sequence[Value] = ()) -> ReadScope:
        """Return what is read at least, by the *values* of free literals."""
        return self.condition.scope(self.found.table, values)


@dataclass(frozen=True)
class Plan:
    """What DuckDB is given for a query. Between its `texts` stand the rows of its `readings`."""

    texts: tuple[str, ...]
    readings: tuple[Reading, ...]
    outputs: tuple[Output, ...]
    helpers: tuple[Helper, ...]

    def text(self, rows: Sequence[str]) -> str:
        """Return DuckDB's text, with the SQL of the rows of each reading."""
        made = self.texts[0]
        for relation, text in zip(rows, self.texts[1:], strict=True):
            made += relation + text
        return made


@dataclass(frozen=True)
class Translated:
    """A query as DuckDB gets it: `query_text` is what its plan becomes in its context, and `text`
    has the rows of its tables, too. `placed` is the plan with clauses that DuckDB does not have.
    """

    placed: QueryPlan
    plan: QueryPlan
    context: Context
    query_text: str
    text: str
    outputs: tuple[Output, ...]


def with_rows(relations: Mapping[str, str], text: str) -> str:
    """Return *text* with the relations that it reads. They are no views: DuckDB would look for
    their columns once when it makes a view, and again when it reads it.
    """
    if not relations:
        return text
    rows = ", ".join(f"{name} AS NOT MATERIALIZED ({sql})" for name, sql in relations.items())
    return f"WITH {rows} ({text})"


def plan_of(done: Translated, readings: Sequence[tuple[Reading, str]]) -> Plan | None:
    """Return the plan of a query for any moment; None: it cannot serve again.

    Args:
        readings: what it read, and the SQL of that.
    """
    later = replace(done.context, moment=done.context.moment + _LATER, needed={})
    texts = cut(done.text, [rows for _, rows in readings])
    if texts is None or query(done.plan, later) != done.query_text:
        return None
    helpers = tuple(done.context.needed.values())
    kept = (replace(reading, condition=reading.condition.detached()) for reading, _ in readings)
    return Plan(texts, tuple(kept), done.outputs, helpers)


def cut(text: str, rows: Sequence[str]) -> tuple[str, ...] | None:
    """Cut *text* where the SQL of *rows* stands in it; None: one is not there exactly once, in
    their order.
    """
    pieces = []
    rest = text
    for relation in rows:
        if text.count(relation) != 1:
            return None
        before, found, rest = rest.partition(relation)
        if not found:
            return None
        pieces.append(before)
    return (*pieces, rest)


def says_the_same(
    plan: Plan, own: Plan, free: Sequence[FreeLiteral], text: QueryText, timezone: str
) -> bool:
    """Tell if *plan*, whose literals are free, is *own*, the plan of one text, with those exchanged
    and nothing else.
    """
    written = tuple(put_values(piece, free, text, timezone) for piece in plan.texts)
    return (
        written == own.texts
        and numbers_in(plan.texts) == {*range(1, len(free) + 1)}
        and plan.outputs == own.outputs
        and plan.helpers == own.helpers
    )


@dataclass(frozen=True)
class PlanKey:
    """What a plan is found by.

    Args:
        between: what stands between the literals of a text.
        kinds: those of the literals.
        literals: those that are not free, None for each that is.
        holders: places of placeholders among them.
        revision: of the catalog.
    """

    between: tuple[str, ...]
    kinds: str
    literals: tuple[str | None, ...]
    holders: tuple[int, ...]
    database: str
    timezone: str
    revision: int


@dataclass(frozen=True)
class AskedText:
    """A text as it was asked. `revision`: of the catalog."""

    text: QueryText
    database: str
    timezone: str
    revision: int

    def key(self, free: Sequence[FreeLiteral]) -> PlanKey:
        """Return the key of its plan, if it has the free literals *free*."""
        return self._key(self.text.without(one.place for one in free))

    @property
    def shape(self) -> PlanKey:
        """What it shares with the texts that differ from it in literals alone."""
        return self._key(())

    def _key(self, literals: tuple[str | None, ...]) -> PlanKey:
        text = self.text
        return PlanKey(
            text.between,
            text.kinds,
            literals,
            text.holders,
            self.database,
            self.timezone,
            self.revision,
        )


@dataclass(frozen=True)
class KnownQuery:
    """A plan and what its names meant: (database, name) → table."""

    plan: Plan
    tables: Mapping[tuple[str, str], ResolvedTable]
    #: literals whose values it is given at each run
    free: tuple[FreeLiteral, ...] = ()
    #: names of the child table that stands for all of its supertable; see `child_texts`
    child: tuple[str, str] | None = None

    def values(self, asked: AskedText) -> tuple[Value, ...] | None:
        """Return the values of the free literals in a text; None: the plan is not for them."""
        return values_of(self.free, asked.text, asked.timezone)


class Plans:
    """Thread-safe. A text is planned for good when it, or one that differs from it in free literals
    alone, comes for the second time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: shape → which literals are free
        self._free: OrderedDict[PlanKey, tuple[FreeLiteral, ...]] = OrderedDict()
        #: shapes whose plans are of one child table each
        self._apart: OrderedDict[PlanKey, bool] = OrderedDict()
        #: None: it came once, or cannot be remembered
        self._known: OrderedDict[PlanKey, KnownQuery | None] = OrderedDict()

    def find(self, asked: AskedText) -> KnownQuery | None:
        with self._lock:
            free = self._free.get(asked.shape)
            if free is None:
                return None
            self._free.move_to_end(asked.shape)
            key = asked.key(free)
            if key in self._known:
                self._known.move_to_end(key)
            return self._known.get(key)

    def free_in(self, asked: AskedText) -> tuple[FreeLiteral, ...] | None:
        """Return the free literals of a text; None: nobody has looked for them."""
        with self._lock:
            return self._free.get(asked.shape)

    def note_free(self, asked: AskedText, free: tuple[FreeLiteral, ...]) -> None:
        """Remember which literals of a text are free."""
        with self._lock:
            _put(self._free, asked.shape, free)

    def keep_apart(self, shared: AskedText) -> None:
        """Remember that a text of a child table has a plan of that child table alone."""
        with self._lock:
            _put(self._apart, shared.shape, True)

    def are_apart(self, shared: AskedText) -> bool:
        """Tell if each child table has a plan of its own for a text."""
        with self._lock:
            return shared.shape in self._apart

    def came_before(self, key: PlanKey) -> bool:
        """Tell if a text came before; from now on it did."""
        with self._lock:
            if key in self._known:
                return True
            _put(self._known, key, None)
            return False

    def keep(self, key: PlanKey, known: KnownQuery) -> None:
        with self._lock:
            _put(self._known, key, known)


def asked_text(
    sql: str, database: str, timezone: str, revision: int, parameters: Parameters | None = None
) -> AskedText | None:
    """Return a text as plans are found by it; None: it is too long to be remembered, or its
    parameters are, or they do not fit.
    """
    if len(sql) > _LONGEST:
        return None
    text = cut_bound_text(sql, parameters, timezone) if parameters else cut_text(sql)
    if text is None or sum(map(len, text.literals)) > _LONGEST:
        return None
    return AskedText(text, database, timezone, revision)


def _put(into: OrderedDict[PlanKey, V], key: PlanKey, value: V) -> None:
    into[key] = value
    if len(into) > _MOST:
        into.popitem(last=False)
