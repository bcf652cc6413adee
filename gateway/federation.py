"""External streams and materialized views: CREATE, DROP, SYSTEM PAUSE and RESUME, and INSERT into
an external stream.

Owns asking the other deployment at CREATE (schema, credentials, where rows begin), the secret file
of a password, and the mirrors that let streams compute over external streams. What runs afterwards
is the federation room's business, which follows the catalog.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import polars as pl
import pyarrow as pa
from sqlglot import exp

from gateway import named_nulls
from gateway.abroad import Producers
from gateway.ddl import Definer
from gateway.foreign import ForeignTopics
from gateway.rows import Layout
from penstock import names
from penstock.bus import Admin
from penstock.catalog import changes
from penstock.catalog.changes import Change
from penstock.catalog.model import External, Table, View
from penstock.clock import Clock, milliseconds
from penstock.cursor import Cursor
from penstock.errors import CatalogError
from penstock.link import external
from penstock.link.address import LinkLost
from penstock.link.description import Description, require_log
from penstock.link.pool import Links, connect_any
from penstock.link.selection import Selection, check, compile_selection
from penstock.partition import partition_of
from penstock.reach import Outbound, Reach
from penstock.sql import statements as st
from penstock.sql.dialect import to_sql
from penstock.sql.plan import Column
from penstock.sql.statements import CreateStream
from penstock.types import ColumnType

_CONNECT_S = 5.0
_TIME_NAMES = ("_tp_time", "_rowts", "_c0")


class Federation:
    """Runs in the DDL thread, except `write`, which blocks and runs in a worker thread."""

    def __init__(
        self,
        definer: Definer,
        admin: Admin,
        clock: Clock,
        data_dir: Path,
        outbound: Outbound,
        topics: ForeignTopics,
    ) -> None:
        """*outbound*: where external streams may be."""
        self._definer = definer
        self._admin = admin
        self._clock = clock
        self._data_dir = data_dir
        self._topics = topics
        self._outbound = outbound
        self._links = Links(timeout=_CONNECT_S)
        self._producers = Producers(self._links)

    def close(self) -> None:
        self._links.close()

    # ---------------------------------------------------------------- external streams

    def create_external(self, statement: st.CreateExternalStream, database: str) -> None:
        """Look at the table over there, keep the password, and note the rest in the catalog."""
        name = statement.stream.name
        if self._definer.catalog.external(database, name) is not None and statement.if_not_exists:
            return
        if dict(statement.settings).get("type", "").lower() == "kafka":
            self._topics.create(statement, database)
            return
        settings = external.read_settings(dict(statement.settings), self._data_dir)
        maker = self._definer.user
        described = self._describe(
            settings, self._outbound.reach(maker, link=True), statement.columns
        )
        first = described[0]
        entry_id = self._definer.new_id()
        home = self._definer.catalog.database(database)
        entry = External(
            entry_id,
            home.name if home is not None else database,
            name,
            settings.type,
            settings.shards,
            first.database,
            first.child or first.name,
            first.columns,
            first.tags,
            first.precision,
            first.key_column,
            settings.user,
            settings.secure,
            settings.ca_file,
            first.partitions,
            tuple(d.id for d in described),
            milliseconds(self._clock),
            first.numbered,
            maker,
        )
        changes.create_external(self._definer.catalog, entry)
        external.keep_secret(self._data_dir, entry_id, settings.password)
        try:
            self._definer.decide(lambda c, _: changes.create_external(c, entry))
        except BaseException:
            external.forget_secret(self._data_dir, entry_id)
            raise

    def _describe(
        self, settings: external.Settings, reach: Reach, given: Sequence[st.ColumnDef] | None
    ) -> list[Description]:
        """The table at each shard, all of one shape. With columns given a deployment that is down
        is taken at the statement's word.
        """
        described: list[Description] = []
        shards = settings.addresses(reach)
        for address in (a for replicas in shards for a in replicas):
            reach.addresses(address.host, address.port)
        for replicas in shards:
            try:
                with connect_any(replicas, timeout=_CONNECT_S) as link:
                    described.append(link.describe(settings.stream, settings.db))
            except LinkLost:
                if given is None:
                    raise
            except CatalogError as missing:
                if missing.code == "E_EXTERNAL_HOST":
                    raise
                where = f"{replicas[0].shown}, {settings.db}.{settings.stream}"
                raise CatalogError(
                    f"the other deployment has no such table: {where}",
                    code=missing.code,
                    detail=missing.message,
                ) from None
        if given is not None:
            columns = tuple(Column(c.name, c.type) for c in given)
            if not described:
                return [Description(0, settings.db, settings.stream, columns)]
            described = [_narrowed(d, columns) for d in described]
        first = described[0]
        for other in described[1:]:
            if (other.columns, other.tags, other.precision) != (
                first.columns,
                first.tags,
                first.precision,
            ):
                raise CatalogError(
                    "the shards' tables differ",
                    code="E_REMOTE_SCHEMA",
                    hint="their columns and precision must be the same",
                )
        return described

    def drop_external(self, database: str, name: str, if_exists: bool) -> None:
        """Mirrors that nothing reads go, too."""
        self.sweep()
        table = self._definer.catalog.table(database, name)
        if table is not None and table.foreign:
            self._definer.drop_table(database, name, if_exists)
            self.forget([table])
            return
        entry = self._definer.catalog.external(database, name)
        self._definer.decide(
            lambda c, _: changes.drop_external(c, database, name, if_exists=if_exists)
        )
        if entry is not None:
            external.forget_secret(self._data_dir, entry.id)

    def forget(self, entries: Sequence[External | Table]) -> None:
        """The passwords of external streams that are gone."""
        for entry in entries:
            if isinstance(entry, Table):
                self._topics.forget(entry)
            else:
                external.forget_secret(self._data_dir, entry.id)

    # ---------------------------------------------------------------- rows for external streams

    @staticmethod
    def layout(entry: External) -> Layout:
        """What rows of an external stream look like to INSERT."""
        columns = tuple(c for c in external.description_of(entry).given if c not in entry.tags)
        key = None if entry.numbered else entry.key_column
        return Layout(
            entry.id,
            0,
            entry.database,
            entry.name,
            "",
            1,
            columns,
            entry.tags,
            entry.precision,
            1 << 62,
            not entry.tags,
            key,
        )

    def write(self, entry: External, frame: pl.DataFrame) -> int:
        """Append rows over there; rows of one child table (or time) always go to the same shard.
        Raises PenstockError.
        """
        shards = external.addresses(
            entry, self._data_dir, self._outbound.reach(entry.maker, link=True)
        )
        by = frame["tbname"] if entry.tags else frame[entry.time_column].cast(pl.String)
        numbers = partition_of(by, len(shards))
        written = 0
        for number, replicas in enumerate(shards):
            part = frame.filter(numbers == number)
            if part.height:
                versions, _ = named_nulls.spelled_out(part, entry.columns, [part.height])
                sent = self._producers.write(replicas, entry, _arrow(versions, entry))
                written += min(sent, part.height)
        return written

    # ---------------------------------------------------------------- views

    def create_view(self, statement: st.CreateView, database: str, timezone: str) -> None:
        """Check SELECT, source and target; note in the catalog where rows begin."""
        catalog = self._definer.catalog
        if catalog.view(database, statement.view.name) is not None and statement.if_not_exists:
            return
        inner = st.Query(
            source=statement.source, start=statement.start, end=statement.end, query=statement.query
        )
        if not isinstance(statement.query, exp.Select):
            raise statement.error("a view is one SELECT", code="E_UNSUPPORTED_QUERY")
        select, node = check(inner, statement.query)
        source = self._entry(
            statement,
            st.Name(node.name, node.db or None, node.meta.get("start", statement.start)),
            database,
        )
        sql = to_sql(select)
        description = _description(source)
        selection = compile_selection(sql, description, timezone, self._clock.now())
        view_id = self._definer.new_id()
        puts: tuple[Table, ...] = ()
        if statement.target is None:
            made = self._own_target(statement, database, description, selection)
            puts = (made,)
            target_id = made.id
            target = Description.of(made)
        else:
            found = self._entry(statement, statement.target, database, writing=True)
            target_id = found.id
            target = _description(found)
        _check_target(statement, description, selection, target)
        begin = self._begin(source, earliest=_rewinds(select))
        home = catalog.database(database)
        view = View(
            view_id,
            home.name if home is not None else database,
            statement.view.name,
            sql,
            source.id,
            target_id,
            bool(puts),
            begin=begin,
            created=milliseconds(self._clock),
            timezone=timezone,
            on_error=statement.on_error or "retry",
        )
        change = changes.create_view(catalog, view)
        self._definer.commit(Change((*puts, *change.puts)))

    def _own_target(
        self, statement: st.CreateView, database: str, source: Description, selection: Selection
    ) -> Table:
        """The table of a view without INTO: what is selected, behind the source's time, with the
        source's tags.
        """
        chosen = {c.name.lower(): c for c in selection.outputs}
        tags = tuple(chosen.pop(t.name.lower(), t) for t in source.tags)
        time = chosen.pop(source.time_column.lower(), source.columns[0])
        key = (
            source.key_column
            if source.key_column is not None and source.key_column.lower() in chosen
            else None
        )
        rest = list(chosen.values())
        if key is not None:
            rest.sort(key=lambda c: c.name.lower() != key.lower())
        home = self._definer.catalog.database(database)
        precision = home.precision if home is not None else source.precision
        if precision != source.precision:
            raise statement.error(
                f"times of {source.shown} are in {source.precision}, those of {database} in"
                f" {precision}",
                code="E_BAD_OPTION",
                hint="write INTO a table of a database of the same precision",
            )
        made = changes.create_table(
            self._definer.catalog,
            self._definer.new_id,
            database,
            statement.view.name,
            (time, *rest),
            tags,
            key_column=key,
        )
        (table,) = made.puts
        assert isinstance(table, Table)
        return table

    def _entry(
        self, statement: st.Statement, name: st.Name, database: str, *, writing: bool = False
    ) -> Table | External:
        """A table, an external stream, or the target of a view."""
        catalog = self._definer.catalog
        home = name.database or database
        found: Table | External | None = catalog.table(home, name.name) or catalog.external(
            home, name.name
        )
        if found is None and (view := catalog.view(home, name.name)) is not None:
            target = catalog.by_id(view.target_id)
            found = target if isinstance(target, Table | External) else None
        if found is None:
            raise statement.error(
                f"there is no table or external stream {home}.{name.name}", name, code="E_NO_TABLE"
            )
        if isinstance(found, Table):
            require_log(found, writing=writing)
        return found

    def _begin(self, source: Table | External, *, earliest: bool) -> tuple[str, ...]:
        """A token for each shard: the first record that counts."""
        if isinstance(source, Table):
            places = [(source.topic, p) for p in range(source.partitions)]
            ends = dict.fromkeys(places, 0) if earliest else self._admin.end_offsets(places)
            return (f"{source.id}.{Cursor({p: o for (_, p), o in ends.items()}).token()}",)
        if earliest:
            return ("earliest",) * len(source.shards)
        found = []
        for replicas in external.addresses(
            source, self._data_dir, self._outbound.reach(source.maker, link=True)
        ):
            with connect_any(replicas, timeout=_CONNECT_S) as link:
                channel = link.subscribe(
                    f"SELECT * FROM {_quoted(source.remote_name)}",
                    source.remote_database,
                    start="latest",
                )
                found.append(str(channel.expect("subscribed", _CONNECT_S * 2).header["token"]))
        return tuple(found)

    def steer(self, statement: st.SteerView, database: str) -> Callable[[], None] | None:
        """Note it in the catalog; of a pause, what waits until it has come about."""
        pause = statement.action == "pause"
        view = self._definer.catalog.view(database, statement.view.name)
        if view is not None and view.status == "paused" and not pause:
            self._definer.forget_pause(view.id)
        status: Literal["paused", "running"] = "paused" if pause else "running"
        self._definer.decide(
            lambda c, _: changes.set_view_status(c, database, statement.view.name, status)
        )
        if view is None or not pause or not self._definer.runs("federation"):
            return None
        return partial(self._definer.wait_paused, view.id)

    def drop_view(self, database: str, name: str, if_exists: bool) -> None:
        self._definer.decide(lambda c, _: changes.drop_view(c, database, name, if_exists=if_exists))

    # ---------------------------------------------------------------- mirrors

    def over_mirror(self, statement: CreateStream, database: str | None) -> CreateStream:
        """A stream over an external stream reads its mirror: the same statement with the mirror's
        name.
        """
        clause = statement.query.args.get("from_")
        node = clause.this if clause is not None else None
        home = (node.db or database) if isinstance(node, exp.Table) else None
        if not isinstance(node, exp.Table) or home is None:
            return statement
        entry = self._definer.catalog.external(home, node.name)
        if entry is None:
            view = self._definer.catalog.view(home, node.name)
            target = self._definer.catalog.by_id(view.target_id) if view is not None else None
            if isinstance(target, Table) and target.name.lower() != node.name.lower():
                return _renamed(statement, target.database, target.name)
            if not isinstance(target, External):
                return statement
            entry = target
        mirror = self._mirror(entry, history=bool(statement.options.fill_history))
        return _renamed(statement, mirror.database, mirror.name)

    def _mirror(self, entry: External, *, history: bool) -> Table:
        """The table that the rows of *entry* are pumped into: all of them, or those from now on."""
        name = names.mirror(entry.name, history=history)
        catalog = self._definer.catalog
        known = catalog.table(entry.database, name)
        if known is not None:
            return known
        made = changes.create_table(
            catalog,
            self._definer.new_id,
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
        view = View(
            self._definer.new_id(),
            entry.database,
            name,
            f"SELECT * FROM {_quoted(entry.database)}.{_quoted(entry.name)}",
            entry.id,
            table.id,
            True,
            begin=self._begin(entry, earliest=history),
            created=milliseconds(self._clock),
            mirror=True,
        )
        self._definer.commit(Change((table, view)))
        self._definer.wait_read(table.topic)
        return table

    def sweep(self) -> None:
        """Drop mirrors that no stream reads any more."""
        for view in self._definer.catalog.views():
            if view.mirror and not self._definer.catalog.readers_of(view.target_id):
                self.drop_view(view.database, view.name, True)


def _holds(named: ColumnType, there: ColumnType) -> bool:
    """Whether a column of type *there* may be named as *named*: text that is long enough is, such
    as a `string`.
    """
    texts = ("VARCHAR", "NCHAR")
    return named == there or (
        named.kind in texts and there.kind in texts and named.length >= there.length
    )


def _narrowed(there: Description, columns: tuple[Column, ...]) -> Description:
    """Only the columns that the statement names, which must be there with these types."""
    known = {c.name.lower(): c for c in there.fields}
    for column in columns:
        has = known.get(column.name.lower())
        if has is None or not _holds(column.type, has.type):
            raise CatalogError(
                f"the other side has no column {column.name} {column.type}",
                code="E_REMOTE_SCHEMA",
                detail=(
                    f"it has {has.name} {has.type}"
                    if has is not None
                    else "it has " + ", ".join(c.name for c in there.fields)
                ),
            )
    if columns[0].name.lower() != there.time_column.lower():
        raise CatalogError(
            f"the time column {there.time_column} comes first", code="E_REMOTE_SCHEMA"
        )
    wanted = {c.name.lower() for c in columns}
    return dataclasses.replace(
        there,
        columns=tuple(c for c in there.columns if c.name.lower() in wanted),
        tags=tuple(t for t in there.tags if t.name.lower() in wanted),
    )


def _description(entry: Table | External) -> Description:
    return Description.of(entry) if isinstance(entry, Table) else external.description_of(entry)


def _check_target(
    statement: st.CreateView, source: Description, selection: Selection, target: Description
) -> None:
    """Every selected column has its place, and rows have a time and (for a supertable) a child
    table.
    """
    known = {c.name.lower(): c for c in target.given}
    for column in selection.outputs:
        place = known.get(column.name.lower())
        if place is None:
            raise statement.error(
                f"{target.shown} has no column {column.name}",
                code="E_TARGET_COLUMNS",
                hint="it takes " + ", ".join(c.name for c in target.given),
            )
        fits = (
            place.type.kind == column.type.kind
            or (place.type.numeric and column.type.numeric)
            or (place.type.text and column.type.text)
        )
        if not fits:
            raise statement.error(
                f"{column.name} is {column.type} here and {place.type} in {target.shown}",
                code="E_TARGET_COLUMNS",
            )
    key = None if target.numbered else target.key_column
    if key is not None and key.lower() not in {c.name.lower() for c in selection.outputs}:
        raise statement.error(
            f"the key column {key} of {target.shown} is not selected", code="E_TARGET_COLUMNS"
        )
    if source.is_stable and not target.is_stable:
        raise statement.error(
            f"{source.shown} has child tables and {target.shown} has none",
            code="E_TARGET_NOT_STABLE",
            detail="rows of one time from different child tables would replace each other",
            hint="make the target a supertable",
        )


def _rewinds(select: exp.Select) -> bool:
    """Whether WHERE looks back: a lower bound of the time."""
    where = select.args.get("where")
    if where is None:
        return False
    for node in where.find_all(exp.GT, exp.GTE, exp.Between):
        if isinstance(node.this, exp.Column) and node.this.name.lower() in _TIME_NAMES:
            return True
    return any(
        isinstance(node.expression, exp.Column) and node.expression.name.lower() in _TIME_NAMES
        for node in where.find_all(exp.LT, exp.LTE)
    )


def _renamed(statement: CreateStream, database: str, name: str) -> CreateStream:
    query = statement.query.copy()
    node = query.args["from_"].this
    if not node.args.get("alias"):
        node.set("alias", exp.TableAlias(this=exp.to_identifier(node.name)))
    node.set("db", exp.to_identifier(database))
    node.set("this", exp.to_identifier(name))
    return dataclasses.replace(statement, query=query)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _arrow(frame: pl.DataFrame, entry: External) -> pa.Table:
    """Ticks as timestamps, in the types of the other side's columns."""
    arrays = (
        {"tbname": frame["tbname"].to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.string())}
        if entry.tags
        else {}
    )
    if "_op" in frame.columns:
        arrays["_op"] = frame["_op"].to_arrow()
    for column in (*entry.columns, *entry.tags):
        if column.name in frame.columns:
            array = frame[column.name].to_arrow(compat_level=pl.CompatLevel.oldest())
            arrays[column.name] = array.cast(column.type.arrow(entry.precision))
    return pa.table(arrays)
