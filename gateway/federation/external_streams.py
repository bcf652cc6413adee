"""External streams: CREATE asks the other deployment for its table, DROP forgets it.

Owns the secret file of a password.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from gateway.ddl.definer import Definer
from gateway.ddl.removal import Removal
from gateway.federation.foreign_topics import ForeignTopics
from gateway.federation.mirrors import Mirrors
from penstock.catalog import changes
from penstock.catalog.model import External, Table
from penstock.errors import CatalogError
from penstock.link import external
from penstock.link.address import Address, LinkLost
from penstock.link.description import Description
from penstock.link.pool import connect_any
from penstock.outbound.reach import Outbound, Reach
from penstock.runtime.clock import Clock, milliseconds
from penstock.sql import statements as st
from penstock.sql.plan import Column
from penstock.types import ColumnType

_CONNECT_S = 5.0


class ExternalStreams:
    """Runs in the DDL thread."""

    def __init__(
        self,
        definer: Definer,
        removal: Removal,
        mirrors: Mirrors,
        topics: ForeignTopics,
        clock: Clock,
        data_dir: Path,
        outbound: Outbound,
    ) -> None:
        """*outbound*: where external streams may be."""
        self._definer = definer
        self._removal = removal
        self._mirrors = mirrors
        self._topics = topics
        self._clock = clock
        self._data_dir = data_dir
        self._outbound = outbound

    def create(self, statement: st.CreateExternalStream, database: str) -> None:
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
        """Return the table at each shard, all of one shape. With columns given a deployment that is
        down is taken at the statement's word.
        """
        shards = settings.addresses(reach)
        for address in (a for replicas in shards for a in replicas):
            reach.addresses(address.host, address.port)
        asked = (_ask(replicas, settings, optional=given is not None) for replicas in shards)
        described = [d for d in asked if d is not None]
        if given is not None:
            columns = tuple(Column(c.name, c.type) for c in given)
            if not described:
                return [Description(0, settings.db, settings.stream, columns)]
            described = [_narrow(d, columns) for d in described]
        _check_same(described)
        return described

    def drop(self, database: str, name: str, if_exists: bool) -> None:
        """DROP EXTERNAL STREAM; mirrors that nothing reads go, too."""
        self._mirrors.sweep()
        table = self._definer.catalog.table(database, name)
        if table is not None and table.foreign:
            self._removal.drop_table(database, name, if_exists)
            self.forget([table])
            return
        entry = self._definer.catalog.external(database, name)
        self._definer.decide(
            lambda c, _: changes.drop_external(c, database, name, if_exists=if_exists)
        )
        if entry is not None:
            external.forget_secret(self._data_dir, entry.id)

    def forget(self, entries: Sequence[External | Table]) -> None:
        """Delete the passwords of external streams that are gone."""
        for entry in entries:
            if isinstance(entry, Table):
                self._topics.forget(entry)
            else:
                external.forget_secret(self._data_dir, entry.id)


def _ask(
    replicas: tuple[Address, ...], settings: external.Settings, *, optional: bool
) -> Description | None:
    """Return the table at one shard; None when that is down and *optional*."""
    try:
        with connect_any(replicas, timeout=_CONNECT_S) as link:
            return link.describe(settings.stream, settings.db)
    except LinkLost:
        if not optional:
            raise
        return None
    except CatalogError as missing:
        if missing.code == "E_EXTERNAL_HOST":
            raise
        where = f"{replicas[0].shown}, {settings.db}.{settings.stream}"
        raise CatalogError(
            f"the other deployment has no such table: {where}",
            code=missing.code,
            detail=missing.message,
        ) from None


def _check_same(described: Sequence[Description]) -> None:
    """Raise CatalogError when the tables of several shards differ."""
    shapes = [(d.columns, d.tags, d.precision) for d in described]
    if any(shape != shapes[0] for shape in shapes):
        raise CatalogError(
            "the shards' tables differ",
            code="E_REMOTE_SCHEMA",
            hint="their columns and precision must be the same",
        )


def _narrow(there: Description, columns: tuple[Column, ...]) -> Description:
    """Leave only the columns that the statement names, which must be there with these types."""
    _check_columns(there, columns)
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


def _check_columns(there: Description, columns: tuple[Column, ...]) -> None:
    """Raise CatalogError unless *there* has all of *columns*."""
    known = {c.name.lower(): c for c in there.fields}
    for column in columns:
        has = known.get(column.name.lower())
        if has is not None and _holds(column.type, has.type):
            continue
        shown = f"{has.name} {has.type}" if has else ", ".join(c.name for c in there.fields)
        raise CatalogError(
            f"the other side has no column {column.name} {column.type}",
            code="E_REMOTE_SCHEMA",
            detail=f"it has {shown}",
        )


def _holds(named: ColumnType, there: ColumnType) -> bool:
    """Tell whether a column of type *there* may be named as *named*: text that is long enough is,
    such as a `string`.
    """
    texts = ("VARCHAR", "NCHAR")
    return named == there or (
        named.kind in texts and there.kind in texts and named.length >= there.length
    )
