"""Mirrors: tables that rows of external streams are pumped into, so that streams compute over
them.
"""

from __future__ import annotations

import dataclasses

from sqlglot import exp

from gateway.ddl.definer import Definer
from gateway.federation.view_start import ViewStart
from penstock import names
from penstock.catalog import changes
from penstock.catalog.changes import Change, NewId
from penstock.catalog.model import External, Table, View
from penstock.errors import CatalogError
from penstock.runtime.clock import Clock, milliseconds
from penstock.sql.statements import CreateStream
from penstock.sql.words import in_backticks


class Mirrors:
    """Runs in the DDL thread."""

    def __init__(self, definer: Definer, start: ViewStart, clock: Clock) -> None:
        self._definer = definer
        self._start = start
        self._clock = clock

    def redirect(self, statement: CreateStream, database: str | None) -> CreateStream:
        """Return *statement* with the table that it reads in place of an external stream or a
        view: the mirror, which is made where there is none, or the view's target.
        """
        read, entry = self.preview(statement, database)
        if read is None:
            return statement
        if entry is not None and self._definer.catalog.table(read.database, read.name) is None:
            history = bool(statement.options.fill_history)
            read = self._create(entry, read.name, history=history)
        return over(statement, read)

    def preview(
        self, statement: CreateStream, database: str | None
    ) -> tuple[Table | None, External | None]:
        """Return the table that `redirect` has *statement* read instead, and the external stream
        that it mirrors. Any thread: a mirror that is not there yet is not made. Raises
        CatalogError.
        """
        clause = statement.query.args.get("from_")
        node = clause.this if clause is not None else None
        if not isinstance(node, exp.Table):
            return None, None
        home = node.db or database
        source = self._source(home, node.name) if home is not None else None
        if isinstance(source, External):
            return self._mirror(source, history=bool(statement.options.fill_history)), source
        if source is None or source.name.lower() == node.name.lower():
            return None, None
        return source, None

    def _source(self, database: str, name: str) -> External | Table | None:
        """Return the external stream called *name*, or the target of the view called so."""
        catalog = self._definer.catalog
        entry = catalog.external(database, name)
        if entry is not None:
            return entry
        view = catalog.view(database, name)
        target = catalog.by_id(view.target_id) if view is not None else None
        return target if isinstance(target, External | Table) else None

    def _mirror(self, entry: External, *, history: bool) -> Table:
        """Return the table that the rows of *entry* are pumped into: all of them, or those from now
        on. One that is not there yet has no id.
        """
        name = names.mirror(entry.name, history=history)
        known = self._definer.catalog.table(entry.database, name)
        return known if known is not None else self._table_for(entry, name, lambda: 0)

    def _table_for(self, entry: External, name: str, new_id: NewId) -> Table:
        """Return a new mirror of *entry*. Raises CatalogError."""
        made = changes.create_table(
            self._definer.catalog,
            new_id,
            entry.database,
            name,
            entry.columns,
            entry.tags,
            key_column=entry.key_column,
            own_topic=True,
            partitions=entry.partitions,
        )
        (table,) = made.puts
        assert isinstance(table, Table)
        if table.precision != entry.precision:
            raise CatalogError(
                f"times of {entry.name} are in {entry.precision}, those of database"
                f" {entry.database} in {table.precision}",
                code="E_BAD_OPTION",
                hint="make the external stream in a database of the same precision",
            )
        return table

    def _create(self, entry: External, name: str, *, history: bool) -> Table:
        table = self._table_for(entry, name, self._definer.new_id)
        view = View(
            self._definer.new_id(),
            entry.database,
            name,
            f"SELECT * FROM {in_backticks(entry.database)}.{in_backticks(entry.name)}",
            entry.id,
            table.id,
            True,
            begin=self._start.tokens(entry, earliest=history),
            created=milliseconds(self._clock),
            mirror=True,
        )
        self._definer.commit(Change((table, view)))
        self._definer.watch.until_read(table.topic)
        return table

    def sweep(self) -> None:
        """Drop mirrors that no stream reads any more."""
        for view in self._definer.catalog.views():
            if view.mirror and not self._definer.catalog.readers_of(view.target_id):
                self._drop(view)

    def _drop(self, view: View) -> None:
        self._definer.decide(
            lambda c, _: changes.drop_view(c, view.database, view.name, if_exists=True)
        )


def over(statement: CreateStream, table: Table) -> CreateStream:
    """Return *statement* with another table in its FROM."""
    query = statement.query.copy()
    node = query.args["from_"].this
    if not node.args.get("alias"):
        node.set("alias", exp.TableAlias(this=exp.to_identifier(node.name)))
    node.set("db", exp.to_identifier(table.database))
    node.set("this", exp.to_identifier(table.name))
    return dataclasses.replace(statement, query=query)
