"""DDL statements as calls of the rules: which rule each statement means, and what to wait for
afterwards.

Owns binding names of statements to the current database. Runs in the DDL thread; what may take long
(a topic being read, a stream going live) is handed back as a function for another thread, so that
one slow statement does not hold up the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from gateway import insert, times
from gateway.ddl import Definer
from gateway.federation import Federation
from gateway.intake import database_of, layout_of
from gateway.mover import Mover
from gateway.principals import Principals
from gateway.stream_tables import StreamTables, wanted
from gateway.streams import Streams
from penstock.catalog import changes, functions, stream_tables, virtual
from penstock.catalog.changes import Change, NewId
from penstock.catalog.model import Database, External, Table, VirtualColumn
from penstock.catalog.view import Catalog
from penstock.clock import Clock
from penstock.errors import CatalogError
from penstock.sql import statements as st
from penstock.sql.plan import TICKS_PER_SECOND, Column, Duration
from penstock.types import ColumnType
from penstock.udf import UserFunction
from penstock.udf.sandbox import try_out

After = Callable[[], None] | None


class Definitions:
    """Applies one DDL statement at a time."""

    def __init__(
        self,
        definer: Definer,
        streams: Streams,
        federation: Federation,
        principals: Principals,
        stream_tables: StreamTables,
        mover: Mover,
        clock: Clock,
        *,
        partitions: int,
        allow_functions: bool = False,
    ) -> None:
        """*partitions*: of a database whose statement says nothing of them."""
        self._mover = mover
        self._partitions = partitions
        self._definer = definer
        self._streams = streams
        self._federation = federation
        self._clock = clock
        self._principals = principals
        self._stream_tables = stream_tables
        self._allow_functions = allow_functions

    def apply(self, statement: st.Statement, database: str | None, timezone: str) -> After:
        """Do what *statement* says. Raises PenstockError; CatalogErrors come back pointing at the
        statement.
        """
        try:
            return self._apply(statement, database, timezone)
        except CatalogError as error:
            raise statement.error(
                error.message, code=error.code, detail=error.detail, hint=error.hint
            ) from error

    def _apply(self, statement: st.Statement, database: str | None, timezone: str) -> After:
        match statement:
            case st.CreateDatabase():
                return self._create_database(statement)
            case st.AlterDatabase():
                return self._alter_database(statement)
            case st.CreateStable():
                return self._create_table(statement, database, statement.tags)
            case st.CreateTable():
                return self._create_table(statement, database, ())
            case st.CreateStreamTable():
                return self._create_stream_table(statement, database)
            case st.CreateChildren():
                for child in statement.children:
                    self._create_child(statement, child, database, timezone)
                return None
            case st.AlterTable():
                return self._alter_table(statement, database, timezone)
            case st.Drop():
                return self._drop(statement, database)
            case st.CreateStream():
                made = self._streams.create(
                    self._federation.over_mirror(statement, database), database, timezone
                )
                return None if made is None else lambda: self._streams.wait_live(made)
            case st.PauseStream() | st.ResumeStream() | st.FlushStream():
                return self._steer(statement, database)
            case st.AlterStream():
                self._streams.alter(statement, database)
                return None
            case st.CreateSnode():
                self._definer.create_snode(statement.dnode)
                return None
            case st.CreateFunction():
                return self._create_function(statement)
            case st.RecalculateStream():
                stream = self._streams.find(statement, statement.stream, database, False)
                assert stream is not None
                self._streams.recalculate(statement, stream, times.zone(timezone))
                return None
            case st.CreateExternalStream():
                self._federation.create_external(
                    statement, self._home(statement, statement.stream, database).name
                )
                return None
            case st.CreateView():
                self._federation.create_view(
                    statement, self._home(statement, statement.view, database).name, timezone
                )
                return None
            case st.SteerView():
                return self._federation.steer(
                    statement, self._home(statement, statement.view, database).name
                )
            case (
                st.CreateUser()
                | st.AlterUser()
                | st.CreateRole()
                | st.Grant()
                | st.GrantRole()
                | st.RevokeTokens()
            ):
                self._principals.apply(statement, database)
                return None
        raise statement.error(
            f"{type(statement).__name__} is not available in this version",
            code="E_UNSUPPORTED_STATEMENT",
        )

    # ---------------------------------------------------------------- databases and tables

    def _create_database(self, statement: st.CreateDatabase) -> After:
        o = statement.options
        change = self._definer.decide(
            lambda c, i: changes.create_database(
                c,
                i,
                statement.name,
                precision=o.precision or "ms",
                keep=o.keep,
                partitions=o.partitions or self._partitions,
                max_ahead=o.max_ahead or Duration(1, "d"),
                replica=o.replica or 1,
                dot_to_underscore=bool(o.dot_to_underscore),
                if_not_exists=statement.if_not_exists,
            )
        )
        return self._read(change)

    def _alter_database(self, statement: st.AlterDatabase) -> After:
        o = statement.options
        if o.replica is not None:
            hint = "Kafka's own tools move replicas; REPLICA counts at CREATE DATABASE"
            raise statement.error(
                "replicas of a database are not changed here", code="E_BAD_OPTION", hint=hint
            )
        if o.precision is not None:
            hint = (
                "make a new database, and a materialized view that passes the rows on from the"
                " first: docs/scaling.md shows it"
            )
            raise statement.error(
                "the precision of a database is for ever", code="E_BAD_OPTION", hint=hint
            )
        self._definer.decide(
            lambda c, _: changes.alter_database(
                c,
                statement.name,
                keep=o.keep,
                max_ahead=o.max_ahead,
                dot_to_underscore=o.dot_to_underscore,
            )
        )
        if o.partitions is None:
            return None
        self._mover.move(statement.name, o.partitions)
        moved = database_of(self._definer.catalog, statement.name)
        return lambda: self._definer.wait_read(moved.topic)

    def _create_table(
        self,
        statement: st.CreateStable | st.CreateTable,
        database: str | None,
        tags: Sequence[st.ColumnDef],
    ) -> After:
        if statement.virtual:
            return self._create_virtual(statement, database, tags)
        self._no_origins(statement, [*statement.columns, *tags])
        home = self._home(statement, statement.table, database)
        o = statement.options
        key = next((c.name for c in statement.columns if c.composite_key), None)
        change = self._definer.decide(
            lambda c, i: changes.create_table(
                c,
                i,
                home.name,
                statement.table.name,
                _columns(statement.columns),
                _columns(tags),
                key_column=key,
                own_topic=o.own_topic,
                partitions=o.partitions,
                keep=o.keep,
                comment=o.comment or "",
                if_not_exists=statement.if_not_exists,
            )
        )
        return self._read(change) if o.own_topic else None

    def _create_virtual(
        self,
        statement: st.CreateStable | st.CreateTable,
        database: str | None,
        tags: Sequence[st.ColumnDef],
    ) -> After:
        home = self._home(statement, statement.table, database)
        key = next((c for c in statement.columns if c.composite_key), None)
        if key is not None:
            raise statement.error(
                "a virtual table has no composite key",
                key.offset,
                code="E_BAD_KEY",
                hint="its rows are joined by time",
            )
        self._no_origins(statement, tags)
        o = statement.options
        if o.own_topic or o.keep is not None:
            raise statement.error(
                "a virtual table keeps no rows",
                code="E_BAD_OPTION",
                hint="give options to the tables that hold them",
            )
        origins = [
            self._origin(home, c.name, c.origin) for c in statement.columns if c.origin is not None
        ]
        self._definer.decide(
            lambda c, i: virtual.create_table(
                c,
                i,
                self._definer.find_table,
                home.name,
                statement.table.name,
                _columns(statement.columns),
                origins,
                tags=_columns(tags),
                comment=o.comment or "",
                if_not_exists=statement.if_not_exists,
            )
        )
        return None

    @staticmethod
    def _origin(home: Database, column: str, origin: tuple[st.Name, str]) -> VirtualColumn:
        table, source = origin
        return VirtualColumn(column, table.database or home.name, table.name, source)

    @staticmethod
    def _no_origins(statement: st.Statement, columns: Sequence[st.ColumnDef]) -> None:
        wrong = next((c for c in columns if c.origin is not None), None)
        if wrong is not None:
            hint = "CREATE VTABLE takes columns from other tables"
            raise statement.error(
                f"{wrong.name} cannot come from another table",
                wrong.offset,
                code="E_VTABLE_ORIGIN",
                hint=hint,
            )

    def _create_stream_table(self, statement: st.CreateStreamTable, database: str | None) -> After:
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
                _columns(statement.columns),
                wanted(group.id, o),
                if_not_exists=statement.if_not_exists,
            )
        )
        made = [t for t in change.puts if isinstance(t, Table)]
        return (lambda: self._stream_tables.wait_served(made[0])) if made else None

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
        if not statement.virtual:
            parent = self._definer.catalog.table(home.name, child.stable.name)
            if parent is not None and parent.kind == "virtual":
                raise statement.error(
                    f"{parent.name} is a virtual supertable",
                    child.stable,
                    code="E_NOT_A_STABLE",
                    hint="CREATE VTABLE",
                )
            self._definer.create_child(
                home.name, child.table.name, child.stable.name, values, child.if_not_exists
            )
            return
        origins = [self._origin(home, c, o) for c, o in child.origins]
        self._definer.decide(
            lambda c, i: virtual.create_child(
                c,
                i,
                self._definer.find_table,
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
        at = self._clock.now() * TICKS_PER_SECOND[table.precision] // 10**9
        layout = layout_of(home, table)
        tz = times.zone(timezone)
        return {
            tag.name: v
            for tag, v in insert.tag_values(
                statement, tag_names, values, layout, stable.offset, tz, at
            )
        }

    def _alter_table(self, s: st.AlterTable, database: str | None, timezone: str) -> After:
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
            return None
        if s.action == "set_origin":
            origin = (
                None
                if s.origin is None
                else VirtualColumn(
                    s.name or "", s.origin[0].database or home, s.origin[0].name, s.origin[1]
                )
            )
            self._definer.decide(
                lambda c, _: virtual.set_origin(
                    c, self._definer.find_table, home, name, s.name or "", origin
                )
            )
            return None
        column = (
            Column(s.definition.name, s.definition.type)
            if s.definition is not None
            else Column("", ColumnType("INT"))
        )
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
        if "tag" in s.action:
            altered = self._definer.catalog.table(home, name)
            if altered is not None:
                self._definer.tags_changed(altered)
        return None

    def _set_tag(self, s: st.AlterTable, home: str, name: str, timezone: str) -> None:
        known = self._definer.catalog.child(home, name)
        stable_id = known.stable_id if known is not None else self._definer.stable_of(home, name)
        stable = self._definer.catalog.table_by_id(stable_id) if stable_id is not None else None
        if stable is None:
            raise s.error(f"there is no child table {home}.{name}", s.table, code="E_NO_TABLE")
        tag_names = [k for k, _ in s.values]
        values = [v for _, v in s.values]
        bound = self._tags(
            s,
            database_of(self._definer.catalog, home),
            st.Name(stable.name, home, s.table.offset),
            tag_names,
            values,
            timezone,
        )
        if stable.kind == "virtual":
            merged = bound
            self._definer.decide(
                lambda c, i: changes.set_tags(c, i, home, name, stable.name, merged)
            )
        else:
            self._definer.set_tags(home, name, bound)

    def _create_function(self, s: st.CreateFunction) -> After:
        if not self._allow_functions:
            raise CatalogError(
                "functions are code that the mesh runs, and this mesh takes none",
                code="E_FORBIDDEN",
                hint="its operator allows them with PENSTOCK_GATEWAY_ALLOW_FUNCTIONS=1",
            )
        change = functions.create_function(
            self._definer.catalog,
            self._definer.new_id,
            s.name,
            [t for _, t in s.parameters],
            s.returns,
            s.code,
            aggregate=s.aggregate,
            if_not_exists=s.if_not_exists,
            or_replace=s.or_replace,
        )
        for entry in change.puts:
            complaint = try_out(entry) if isinstance(entry, UserFunction) else None
            if complaint is not None:
                hint = (
                    "functions cannot reach files, the network or other processes"
                    if "PermissionError" in complaint
                    else ""
                )
                raise CatalogError(
                    f"the code of {s.name} cannot be used",
                    code="E_FUNCTION_CODE",
                    detail=complaint,
                    hint=hint,
                )
        self._definer.commit(change)
        return None

    def _drop(self, statement: st.Drop, database: str | None) -> After:
        if statement.kind in ("user", "role"):
            self._principals.drop(statement)
            return None
        replicated: list[Table] = []
        for name, if_exists in zip(statement.names, statement.if_exists, strict=True):
            if statement.kind == "database":
                tables = self._definer.catalog.tables(name.name)
                externals: list[External | Table] = [
                    *self._definer.catalog.externals(name.name),
                    *(t for t in tables if t.foreign),
                ]
                inside = [t for t in tables if t.replicated is not None]
                self._stream_tables.check_unused(inside)
                replicated += inside
                self._definer.drop_database(name.name, if_exists)
                self._federation.forget(externals)
            elif statement.kind in ("table", "stable"):
                home = self._home(statement, name, database)
                table = self._definer.catalog.table(home.name, name.name)
                if table is not None and not table.tags and statement.kind == "stable":
                    raise statement.error(
                        f"{name.name} is no supertable", name, code="E_NOT_A_STABLE"
                    )
                if table is not None and table.replicated is not None:
                    self._stream_tables.check_unused([table])
                    replicated.append(table)
                self._definer.drop_table(home.name, name.name, if_exists)
                if table is not None and table.foreign:
                    self._federation.forget([table])
            elif statement.kind == "external stream":
                self._federation.drop_external(
                    self._home(statement, name, database).name, name.name, if_exists
                )
            elif statement.kind == "materialized view":
                self._federation.drop_view(
                    self._home(statement, name, database).name, name.name, if_exists
                )
            elif statement.kind == "stream":
                self._drop_stream(statement, name, database, if_exists)
            elif statement.kind == "snode":
                self._definer.decide(
                    lambda c, _, number=int(name.name): changes.drop_snode(c, number)  # type: ignore[misc]
                )
            elif statement.kind == "function":
                self._definer.decide(partial(_drop_function, name.name, if_exists))
            else:
                raise statement.error(
                    f"DROP {statement.kind.upper()} is not available in this version",
                    code="E_UNSUPPORTED_STATEMENT",
                )
        return (lambda: self._stream_tables.wait_gone(replicated)) if replicated else None

    def _drop_stream(
        self, statement: st.Drop, name: st.Name, database: str | None, if_exists: bool
    ) -> None:
        """A stream of ours, or an external one; mirrors that only it read go, too."""
        home = name.database or database
        table = self._definer.catalog.table(home, name.name) if home is not None else None
        if home is not None and (
            (table is not None and table.foreign)
            or self._definer.catalog.external(home, name.name) is not None
        ):
            self._federation.drop_external(home, name.name, if_exists)
            return
        stream = self._streams.find(statement, name, database, if_exists)
        if stream is not None:
            self._streams.drop(stream)
            self._federation.sweep()

    def _steer(
        self, statement: st.PauseStream | st.ResumeStream | st.FlushStream, database: str | None
    ) -> After:
        stream = self._streams.find(statement, statement.stream, database, statement.if_exists)
        if stream is None:
            return None
        if isinstance(statement, st.PauseStream):
            self._streams.pause(stream)
        elif isinstance(statement, st.ResumeStream):
            self._streams.resume(stream, statement.ignore_untreated)
        else:
            self._streams.flush(stream)
        return None

    # ---------------------------------------------------------------- parts

    def _read(self, change: Change) -> After:
        topics = [e.topic for e in change.puts if isinstance(e, Database)]
        topics += [e.topic for e in change.puts if isinstance(e, Table)]

        def wait() -> None:
            for topic in topics:
                self._definer.wait_read(topic)

        return wait if topics else None

    def _home(self, statement: st.Statement, name: st.Name, database: str | None) -> Database:
        home = name.database or database
        if home is None:
            raise statement.error(
                "which database?", name, code="E_WHICH_DATABASE", hint=f"write database.{name.name}"
            )
        return database_of(self._definer.catalog, home)


def _drop_function(name: str, if_exists: bool, catalog: Catalog, new_id: NewId) -> Change:
    return functions.drop_function(catalog, name, if_exists=if_exists)


def _columns(defined: Sequence[st.ColumnDef]) -> list[Column]:
    return [Column(c.name, c.type) for c in defined]
