"""CREATE and ALTER of tables, virtual tables, stream tables and child tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gateway import insert, times
from gateway.ddl.child_tables import ChildTables
from gateway.ddl.definer import Definer
from gateway.ddl.resolution import columns_of, home_of
from gateway.intake import database_of, layout_of
from gateway.stream_tables import StreamTableGroups, replication_of
from penstock.catalog import changes, stream_tables, virtual
from penstock.catalog.changes import Change
from penstock.catalog.model import Database, Table, VirtualColumn
from penstock.runtime.clock import Clock
from penstock.sql import statements as st
from penstock.sql.plan import TICKS_PER_SECOND, Column
from penstock.types import ColumnType

#: what to wait for after a statement
After = Callable[[], None] | None
_NO_COLUMN = Column("", ColumnType("INT"))


class TableDefinitions:
    """Runs in the DDL thread; what it returns waits in another."""

    def __init__(
        self,
        definer: Definer,
        child_tables: ChildTables,
        groups: StreamTableGroups,
        clock: Clock,
    ) -> None:
        """*groups*: of the stream tables."""
        self._definer = definer
        self._child_tables = child_tables
        self._stream_tables = groups
        self._clock = clock

    # ---------------------------------------------------------------- tables

    def create(
        self,
        statement: st.CreateStable | st.CreateTable,
        database: str | None,
        tags: Sequence[st.ColumnDef],
    ) -> After:
        """CREATE STABLE and CREATE TABLE, of both kinds."""
        if statement.virtual:
            self._create_virtual(statement, database, tags)
            return None
        _refuse_origins(statement, [*statement.columns, *tags])
        home = self._home(statement, statement.table, database)
        o = statement.options
        key = next((c.name for c in statement.columns if c.composite_key), None)
        change = self._definer.decide(
            lambda c, i: changes.create_table(
                c,
                i,
                home.name,
                statement.table.name,
                columns_of(statement.columns),
                columns_of(tags),
                key_column=key,
                own_topic=o.own_topic,
                partitions=o.partitions,
                keep=o.keep,
                comment=o.comment or "",
                if_not_exists=statement.if_not_exists,
            )
        )
        return until_read(self._definer, change) if o.own_topic else None

    def _create_virtual(
        self,
        statement: st.CreateStable | st.CreateTable,
        database: str | None,
        tags: Sequence[st.ColumnDef],
    ) -> None:
        home = self._home(statement, statement.table, database)
        key = next((c for c in statement.columns if c.composite_key), None)
        if key is not None:
            raise statement.error(
                "a virtual table has no composite key",
                key.offset,
                code="E_BAD_KEY",
                hint="its rows are joined by time",
            )
        _refuse_origins(statement, tags)
        o = statement.options
        if o.own_topic or o.keep is not None:
            raise statement.error(
                "a virtual table keeps no rows",
                code="E_BAD_OPTION",
                hint="give options to the tables that hold them",
            )
        origins = [
            _origin(home, c.name, c.origin) for c in statement.columns if c.origin is not None
        ]
        self._definer.decide(
            lambda c, i: virtual.create_table(
                c,
                i,
                self._child_tables.find_table,
                home.name,
                statement.table.name,
                columns_of(statement.columns),
                origins,
                tags=columns_of(tags),
                comment=o.comment or "",
                if_not_exists=statement.if_not_exists,
            )
        )

    def create_stream_table(self, statement: st.CreateStreamTable, database: str | None) -> After:
        """CREATE STREAM TABLE; what it returns waits until its group serves it."""
        home = self._home(statement, statement.table, database)
        o = statement.options
        group = self._stream_tables.group(o.raft_group)
        if self._definer.catalog.table(home.name, statement.table.name) is None:
            self._stream_tables.check_quorum(group)
        change = self._definer.decide(
            lambda c, i: stream_tables.create(
                c,
                i,
                home.name,
                statement.table.name,
                columns_of(statement.columns),
                replication_of(group.id, o),
                if_not_exists=statement.if_not_exists,
            )
        )
        made = next((t for t in change.puts if isinstance(t, Table)), None)
        return None if made is None else lambda: self._stream_tables.wait_served(made)

    # ---------------------------------------------------------------- child tables

    def create_children(
        self, statement: st.CreateChildren, database: str | None, timezone: str
    ) -> None:
        """CREATE TABLE … USING, for each table of the statement."""
        for child in statement.children:
            self._create_child(statement, child, database, timezone)

    def _create_child(
        self, statement: st.CreateChildren, child: st.ChildDef, database: str | None, timezone: str
    ) -> None:
        home = self._home(statement, child.table, database)
        stable_home = child.stable.database or home.name
        if stable_home.lower() != home.name.lower():
            raise statement.error(
                "a child table is in the database of its supertable",
                child.table,
                code="E_OTHER_DATABASE",
            )
        values = self._tags(
            statement, home, child.stable, child.tag_names, child.tag_values, timezone
        )
        if statement.virtual:
            self._create_virtual_child(home, child, values)
            return
        parent = self._definer.catalog.table(home.name, child.stable.name)
        if parent is not None and parent.kind == "virtual":
            raise statement.error(
                f"{parent.name} is a virtual supertable",
                child.stable,
                code="E_NOT_A_STABLE",
                hint="CREATE VTABLE",
            )
        self._child_tables.create(
            home.name, child.table.name, child.stable.name, values, child.if_not_exists
        )

    def _create_virtual_child(
        self, home: Database, child: st.ChildDef, values: dict[str, Any]
    ) -> None:
        origins = [_origin(home, c, o) for c, o in child.origins]
        self._definer.decide(
            lambda c, i: virtual.create_child(
                c,
                i,
                self._child_tables.find_table,
                home.name,
                child.table.name,
                child.stable.name,
                values,
                origins,
                if_not_exists=child.if_not_exists,
            )
        )

    def _tags(
        self,
        statement: st.Statement,
        home: Database,
        stable: st.Name,
        tag_names: Sequence[str] | None,
        values: Sequence[Any],
        timezone: str,
    ) -> dict[str, Any]:
        table = self._definer.catalog.table(home.name, stable.name)
        if table is None:
            raise statement.error(
                f"there is no supertable {home.name}.{stable.name}", stable, code="E_NO_TABLE"
            )
        if not table.tags:
            raise statement.error(
                f"{table.name} is no supertable and has no tags",
                stable,
                code="E_NOT_A_STABLE",
                hint="USING names a table of CREATE STABLE",
            )
        at = self._clock.now() * TICKS_PER_SECOND[table.precision] // 10**9
        layout = layout_of(home, table)
        tz = times.zone(timezone)
        return {
            tag.name: v
            for tag, v in insert.tag_values(
                statement, tag_names, values, layout, stable.offset, tz, at
            )
        }

    # ---------------------------------------------------------------- ALTER TABLE

    def alter(self, s: st.AlterTable, database: str | None, timezone: str) -> None:
        """ALTER TABLE and ALTER STABLE."""
        home = self._home(s, s.table, database).name
        name = s.table.name
        table = self._definer.catalog.table(home, name)
        if table is not None and table.replicated is not None:
            hint = "make a new one and have a stream fill it"
            raise s.error(
                f"stream table {name} cannot be altered", s.table, code="E_STREAM_TABLE", hint=hint
            )
        if s.action == "set_tag":
            self._set_tag(s, home, name, timezone)
        elif s.action == "set_origin":
            self._set_origin(s, home, name)
        else:
            self._alter_columns(s, home, name)

    def _set_origin(self, s: st.AlterTable, home: str, name: str) -> None:
        column = s.name or ""
        origin = None
        if s.origin is not None:
            table, source = s.origin
            origin = VirtualColumn(column, table.database or home, table.name, source)
        self._definer.decide(
            lambda c, _: virtual.set_origin(
                c, self._child_tables.find_table, home, name, column, origin
            )
        )

    def _alter_columns(self, s: st.AlterTable, home: str, name: str) -> None:
        d = s.definition
        column = Column(d.name, d.type) if d is not None else _NO_COLUMN
        old = s.name or ""
        new = s.new_name or ""
        options = s.options or st.TableOptions()
        rules: dict[str, Callable[..., Change]] = {
            "add_column": lambda c, i: changes.add_column(c, i, home, name, column),
            "add_tag": lambda c, i: changes.add_column(c, i, home, name, column, tag=True),
            "drop_column": lambda c, i: changes.drop_column(c, i, home, name, old),
            "drop_tag": lambda c, i: changes.drop_column(c, i, home, name, old, tag=True),
            "modify_column": lambda c, i: changes.modify_column(c, i, home, name, column),
            "modify_tag": lambda c, i: changes.modify_column(c, i, home, name, column, tag=True),
            "rename_tag": lambda c, i: changes.rename_tag(c, i, home, name, old, new),
            "options": lambda c, i: changes.set_table_options(
                c, home, name, keep=options.keep, comment=options.comment
            ),
        }
        self._definer.decide(rules[s.action])
        altered = self._definer.catalog.table(home, name) if "tag" in s.action else None
        if altered is not None:
            self._child_tables.forget(altered)

    def _set_tag(self, s: st.AlterTable, home: str, name: str, timezone: str) -> None:
        catalog = self._definer.catalog
        known = catalog.child(home, name)
        if known is not None:
            stable_id: int | None = known.stable_id
        else:
            stable_id = self._child_tables.stable_of(home, name)
        stable = catalog.table_by_id(stable_id) if stable_id is not None else None
        if stable is None:
            raise s.error(f"there is no child table {home}.{name}", s.table, code="E_NO_TABLE")
        bound = self._tags(
            s,
            database_of(catalog, home),
            st.Name(stable.name, home, s.table.offset),
            [k for k, _ in s.values],
            [v for _, v in s.values],
            timezone,
        )
        if stable.kind == "virtual":
            self._definer.decide(
                lambda c, i: changes.set_tags(c, i, home, name, stable.name, bound)
            )
        else:
            self._child_tables.set_tags(home, name, bound)

    def _home(self, statement: st.Statement, name: st.Name, database: str | None) -> Database:
        return home_of(self._definer.catalog, statement, name, database)


def until_read(definer: Definer, change: Change) -> After:
    """Return what waits until the topics that *change* has made are read."""
    topics = [e.topic for e in change.puts if isinstance(e, Database)]
    topics += [e.topic for e in change.puts if isinstance(e, Table)]

    def wait() -> None:
        for topic in topics:
            definer.watch.until_read(topic)

    return wait if topics else None


def _origin(home: Database, column: str, origin: tuple[st.Name, str]) -> VirtualColumn:
    table, source = origin
    return VirtualColumn(column, table.database or home.name, table.name, source)


def _refuse_origins(statement: st.Statement, columns: Sequence[st.ColumnDef]) -> None:
    """Raise SqlSemanticError for a column that comes from another table."""
    wrong = next((c for c in columns if c.origin is not None), None)
    if wrong is not None:
        hint = "CREATE VTABLE takes columns from other tables"
        raise statement.error(
            f"{wrong.name} cannot come from another table",
            wrong.offset,
            code="E_VTABLE_ORIGIN",
            hint=hint,
        )
