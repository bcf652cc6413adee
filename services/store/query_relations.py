"""What DuckDB calls the rows that a query reads: those of tables, and those that are computed for
it (`services.store.computed_selects`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from penstock.catalog.model import Table
from penstock.duck import Engine
from penstock.duck.types import duck_type
from penstock.errors import SqlSemanticError
from penstock.link import pushdown
from penstock.sql.relational import (
    ComputedRows,
    QueryPlan,
    Scan,
    SelectPlan,
    TableColumns,
    map_scans,
)
from penstock.sql.statements import Query
from services.store.binding import columns_of
from services.store.child_tags import rows_of_tags
from services.store.execution import Execution
from services.store.external_rows import ExternalRows, FarRows
from services.store.plans import Reading
from services.store.relation import PLACES, quote
from services.store.resolve import ResolvedTable
from services.store.scope import ALL_ROWS, RowCondition, scope_of
from services.store.table_source import TableSource


@dataclass(frozen=True)
class QueryRequest:
    """A SELECT, the database that it is in, and the zone of its times."""

    statement: Query
    database: str
    timezone: str


class _RelationNames:
    """Makes names for relations that no table of a query has."""

    def __init__(self, statement: Query) -> None:
        self._taken = {t.name.lower() for t in statement.query.find_all(exp.Table)}
        self._count = 0

    def make(self) -> str:
        while True:
            self._count += 1
            name = f"_penstock_{self._count}"
            if name not in self._taken:
                return name


class QueryRelations:
    """The relations of one query."""

    def __init__(
        self,
        source: TableSource,
        external_rows: ExternalRows | None,
        engine: Engine,
        execution: Execution,
        request: QueryRequest,
    ) -> None:
        self._source = source
        self._external_rows = external_rows
        self._engine = engine
        self._execution = execution
        self._request = request
        self._names = _RelationNames(request.statement)
        #: (database, name) → what the query means by it
        self.resolved: dict[tuple[str, str], ResolvedTable] = {}
        #: relations that stand for tables, and those that are computed
        self._relations: set[str] = set()
        #: relation → SQL of its rows
        self._rows: dict[str, str] = {}
        #: relation that is named before it has rows → its columns
        self._named: dict[str, TableColumns] = {}
        #: relation → its rows in another deployment, which are not here yet
        self._far: dict[str, FarRows] = {}
        #: whether relations have rows that no other run of the query may see
        self.holds_rows = False
        #: False: the query is only explained
        self.computes = True

    @property
    def names(self) -> frozenset[str]:
        """The relations that the query may read."""
        return frozenset(self._relations)

    def rows_in(self, text: str) -> dict[str, str]:
        """Return the SQL of the rows of each relation that DuckDB's *text* reads."""
        return {name: sql for name, sql in self._rows.items() if name in text}

    def new_name(self) -> str:
        """Return a name for a relation that nothing of the query has."""
        return self._names.make()

    # ---------------------------------------------------------------- tables

    def resolve(self, table: exp.Table) -> ResolvedTable:
        """Find a table that the query names; each is looked for once. Raises SqlError."""
        database = table.db or self._request.database
        found = self.resolved.get((database, table.name))
        if found is None:
            found = self._source.resolve(database, table, self._request.statement)
            self.resolved[database, table.name] = found
        return found

    def table_of(self, table: exp.Table) -> Table | None:
        """Return the stored table that *table* names; None for other relations."""
        other = table.name in self._named and not table.db
        return None if other else self.resolve(table).table

    def columns(self, table: exp.Table) -> TableColumns:
        """Return the columns of a table, or of another relation, that a FROM names."""
        if table.name in self._named and not table.db:
            return self._named[table.name]
        found = self.resolve(table)
        return columns_of(found.table, child=found.child is not None)

    def place(self, plan: QueryPlan, computed: Callable[[ComputedRows], ComputedRows]) -> QueryPlan:
        """Return *plan* with a relation for each of its tables, which keep the names that the query
        has for them.

        Args:
            computed: finds what computed rows are made of.
        """
        return map_scans(plan, lambda scan, select: self._place(plan, select, scan), computed)

    def _place(self, plan: QueryPlan, select: SelectPlan, scan: Scan) -> Scan:
        if scan.table in self._relations and not scan.database:
            return replace(scan, relation=scan.table)
        table = exp.Table(
            this=exp.to_identifier(scan.table),
            db=exp.to_identifier(scan.database) if scan.database else None,
        )
        found = self.resolve(table)
        name = self.new_name()
        if scan.of_tags:
            return self._place_tags(name, found, select, scan)
        if found.external is not None:
            needed = pushdown.find_needs_of_plan(found.external, plan, select, scan)
            rows = self._name_far(name, found, *needed)
        else:
            where = select.where if select.source is scan else None
            condition = RowCondition(where, scan.name, self._request.timezone)
            rows = self.relation(name, found, condition)
        self._rows[name] = rows
        self._relations.add(name)
        return replace(scan, relation=name, alias=scan.name, time=found.table.time_column)

    def _place_tags(self, name: str, found: ResolvedTable, select: SelectPlan, scan: Scan) -> Scan:
        """Make a relation of the child tables that a SELECT can need."""
        table = found.table
        if found.external is not None:
            raise SqlSemanticError(
                f"the tags of {table.database}.{table.name} are in another deployment",
                code="E_UNSUPPORTED_QUERY",
                hint="ask there, or ask for tables of that deployment alone",
            )
        scope = scope_of(select.where, scan.name, table, self._request.timezone)
        only = next(iter(scope.tables)) if scope.tables and len(scope.tables) == 1 else None
        rows = rows_of_tags(table, self._source.tagged(found, only))
        self._engine.con.register(name, rows.to_arrow())
        self._relations.add(name)
        self.holds_rows = True
        return replace(scan, relation=name, alias=scan.name)

    def relation(
        self, prefix: str, found: ResolvedTable, condition: RowCondition = ALL_ROWS
    ) -> str:
        """Return the SQL of the rows of a table, at least those of which *condition* is true.

        Args:
            prefix: of the names under which its rows are registered.
        """
        if found.external is not None:
            return self._name_far(
                prefix, found, [c.name for c in (*found.table.columns, *found.table.tags)], []
            )
        places = tuple(self._places(found.table))
        return self._execution.read(Reading(prefix, found, condition, places))

    def _places(self, table: Table) -> list[str]:
        """Return the virtual columns that the query names and the table has no columns of its own
        for.
        """
        own = {c.name.lower() for c in (*table.columns, *table.tags)}
        return sorted(
            {c.name.lower() for c in self._request.statement.query.find_all(exp.Column)}
            & PLACES.keys() - own
        )

    def fetch_far(self) -> None:
        """Bring the rows here that the query needs of other deployments."""
        for name, far in self._far.items():
            assert self._external_rows is not None
            rows = self._external_rows.rows(far, self._request.timezone)
            self._engine.con.register(name, rows)

    def _name_far(
        self,
        prefix: str,
        found: ResolvedTable,
        columns: Sequence[str],
        conditions: Sequence[exp.Expr],
    ) -> str:
        """Return the SQL of rows of another deployment, which `fetch_far` brings here."""
        if not self.computes:
            raise SqlSemanticError(
                f"{found.table.database}.{found.table.name} is of another deployment",
                code="E_UNSUPPORTED_QUERY",
                hint="send EXPLAIN to the gateway, which knows what is asked of whom",
            )
        entry = found.external
        name = f"{prefix}_far"
        assert entry is not None
        columns = [*columns, *self._places(found.table)]
        self._far[name] = FarRows(entry, tuple(columns), tuple(conditions))
        types = {
            c.name: duck_type(c.type.kind, entry.precision, str(c.type))
            for c in (*entry.columns, *entry.tags)
        }
        types |= {place: kind for place, (_, kind) in PLACES.items() if place not in types}
        listed = ", ".join(f"CAST({quote(c)} AS {types[c]}) AS {quote(c)}" for c in columns)
        return f"SELECT tbname, {listed} FROM {name}"

    # ---------------------------------------------------------------- computed rows

    def name_rows(self, columns: TableColumns) -> str:
        """Return the name of a relation that the query may name. It has no rows yet."""
        name = self.new_name()
        self._relations.add(name)
        self._named[name] = columns
        return name

    def add_computed(self, name: str, sql: str) -> None:
        """Let the query read the computed rows *name*.

        Args:
            sql: computes them where they are read; "": they are there when the query is executed.
        """
        self._relations.add(name)
        if sql:
            self._rows[name] = sql
