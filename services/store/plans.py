"""Queries that were planned before, by their text: what DuckDB is given for them, but for the rows
of their tables, which are looked for anew each time.

A plan holds for as long as the catalog and its tables are the same. Nothing is remembered of a
query whose text for DuckDB depends on its moment, or whose rows were fetched before DuckDB ran:
windows of the kernels, tables of other deployments.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.sql.functions.duckdb import Helper
from penstock.sql.relational import Output, QueryPlan
from services.store.binding import Context
from services.store.resolve import ResolvedTable
from services.store.scope import ReadScope
from services.store.translate import query

#: longest text that is remembered
_LONGEST = 4096
#: texts that are remembered
_MOST = 512
#: nanoseconds to a moment at which `now` and `today()` are other times
_LATER = 400 * 86_400 * 1_000_000_000


@dataclass(frozen=True)
class Reading:
    """What a query reads of a table.

    Args:
        prefix: of the names under which its rows are registered.
        places: virtual columns, see `services.store.relation.PLACES`.
    """

    prefix: str
    found: ResolvedTable
    scope: ReadScope
    places: tuple[str, ...]


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
    return Plan(texts, tuple(reading for reading, _ in readings), done.outputs, helpers)


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


@dataclass(frozen=True)
class PlanKey:
    """What a plan is found by. `revision`: of the catalog."""

    sql: str
    database: str
    timezone: str
    revision: int


@dataclass(frozen=True)
class KnownQuery:
    """A plan and what its names meant: (database, name) → table."""

    plan: Plan
    tables: Mapping[tuple[str, str], ResolvedTable]


class Plans:
    """Thread-safe. A text is planned for good when it comes for the second time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: None: it came once, or cannot be remembered
        self._known: OrderedDict[PlanKey, KnownQuery | None] = OrderedDict()

    def find(self, key: PlanKey) -> KnownQuery | None:
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
            return self._known.get(key)

    def came_before(self, key: PlanKey) -> bool:
        """Tell if a text came before; from now on it did."""
        if len(key.sql) > _LONGEST:
            return False
        with self._lock:
            if key in self._known:
                return True
            self._add(key, None)
            return False

    def keep(self, key: PlanKey, known: KnownQuery) -> None:
        with self._lock:
            self._add(key, known)

    def _add(self, key: PlanKey, known: KnownQuery | None) -> None:
        self._known[key] = known
        if len(self._known) > _MOST:
            self._known.popitem(last=False)
