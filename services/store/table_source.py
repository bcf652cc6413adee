"""Tables of a query: found by name, and their live rows as SQL."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import duckdb
from sqlglot import exp

from penstock.catalog.child_tags import Tagged
from penstock.catalog.model import Table
from penstock.duck.types import duck_type
from penstock.sql.planning.view import SchemaView
from penstock.sql.statements import Query
from services.store import virtual
from services.store.images import Images
from services.store.partitions import layout_of
from services.store.relation import Relation, literal, quote
from services.store.resolve import ResolvedTable, Resolver
from services.store.scope import EVERYTHING, ReadScope


class TableSource:
    """Thread-safe."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    def tagged(self, found: ResolvedTable, only: str | None) -> list[Tagged]:
        """Return the child tables of a table with their tags, or the one called *only*. Raises
        BusError.
        """
        return self._resolver.tagged(found, only)

    def tables(self, found: ResolvedTable) -> Iterator[Table]:
        """Yield the tables that hold a table's rows: itself, or the origins of a virtual one."""
        if found.external is not None:
            return
        if found.table.kind != "virtual":
            yield found.table
            return
        ids = {o.table_id for m in self._resolver.members(found) for o in m.origins}
        yield from (t for t in map(self._resolver.by_id, ids) if t is not None)

    def relation(
        self,
        con: duckdb.DuckDBPyConnection,
        prefix: str,
        found: ResolvedTable,
        images: Images,
        *,
        places: Collection[str] = (),
        scope: ReadScope = EVERYTHING,
    ) -> str:
        """Return the SQL of the live rows of a table or child table, as of one moment of its
        partitions; at least those of *scope*.
        """
        table = found.table
        columns = _columns(table)
        if table.kind == "virtual":
            members = self._resolver.members(found)
            return virtual.sql(
                con,
                prefix,
                columns,
                table.tags,
                members,
                lambda *o: self._origin(con, prefix, images, *o),
            )
        if found.child is not None:
            scope = scope.among([found.child])
        image = scope.narrow(images.of(table)[1], table)
        relation = Relation(con, prefix, layout_of(table), columns, image, places=places)
        return self._within_keep(
            table, relation.sql(None if found.child is None else [found.child])
        )

    def _origin(
        self,
        con: duckdb.DuckDBPyConnection,
        prefix: str,
        images: Images,
        table_id: int,
        tables: Sequence[str],
        number: int,
    ) -> str | None:
        """Return the SQL of the live rows of some child tables (or of a plain table) for a virtual
        one, with their time as `_penstock_ts`.
        """
        table = self._resolver.by_id(table_id)
        if table is None:
            return None
        columns = _columns(table)
        scope = EVERYTHING.among(tables) if table.kind == "stable" else EVERYTHING
        image = scope.narrow(images.of(table)[1], table)
        relation = Relation(con, f"{prefix}_o{number}", layout_of(table), columns, image)
        rows = self._within_keep(table, relation.sql(tables if table.kind == "stable" else None))
        name = "tbname" if table.kind == "stable" else f"{literal(tables[0])} AS tbname"
        return (
            f"SELECT * EXCLUDE (tbname), {name}, {quote(table.time_column)} AS _penstock_ts FROM"
            f" ({rows})"
        )

    def _within_keep(self, table: Table, rows: str) -> str:
        """Leave out of *rows* those that are over their KEEP."""
        before = self._resolver.expiry(table)
        if before is None:
            return rows
        unit = {"ms": "make_timestamp_ms", "us": "make_timestamp", "ns": "make_timestamp_ns"}[
            table.precision
        ]
        return f"SELECT * FROM ({rows}) WHERE {quote(table.time_column)} >= {unit}({before})"

    def resolve(self, database: str, table: exp.Table, statement: Query) -> ResolvedTable:
        """Find a table that *statement* names. Raises SqlError."""
        found = self._resolver.find(table.db or database, table.name)
        if found is None:
            hint = self._resolver.suggestion(table.db or database, table.name)
            raise statement.error(
                f'table "{table.db or database}.{table.name}" does not exist',
                table,
                code="E_TABLE_NOT_EXIST",
                hint=hint,
            )
        return found

    def view(self) -> SchemaView:
        return self._resolver.view()


def _columns(table: Table) -> list[tuple[str, str]]:
    """Return names and DuckDB types of a table's columns and tags."""
    return [
        (c.name, duck_type(c.type.kind, table.precision, str(c.type)))
        for c in (*table.columns, *table.tags)
    ]
