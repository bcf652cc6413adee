"""Stream tables of raft groups for users who know the reference's functions: each under its own
name and as a method in Python's style.

Owns the arguments' names, order and defaults of making, dropping and asking; subscribing and
databases have files of their own. What they do is SQL to the gateway (making and dropping), a
producer (`append`), or a question to the nodes.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa

from penstock.client.appender import Appender
from penstock.client.at_nodes import DEFAULT_DATABASE, table_path
from penstock.client.databases import Databases
from penstock.client.result import Result
from penstock.client.stream_definitions import StreamDefinition
from penstock.client.stream_table_sql import (
    check_arguments,
    option,
    quote_text,
    spell_duration,
    spell_path,
)
from penstock.client.subscribe_table import Subscribing
from penstock.client.table_handles import StreamTable, TableDefinition, quote_name
from penstock.client.wire import ROW_ID, from_stream
from penstock.errors import CatalogError, PenstockError, RemoteError, SchemaError


class StreamTables(Subscribing, Databases):
    """The part of a connection that deals with stream tables."""

    # ---------------------------------------------------------------- making and dropping

    def ha_stream_table(
        self,
        raft_group: int | str,
        table: TableDefinition,
        table_name: str,
        cache_limit: int,
        key_column: str | Sequence[str] | None = None,
        retention_minutes: float = 1440,
        *,
        pre_cache: int | None = None,
        filter_column: str | None = None,
        timestamp_column: str | None = None,
    ) -> StreamTable:
        """Make a highly available stream table and return it when every node has it and one leads
        it.

        Args:
            raft_group: the group that keeps it: an id greater than 1, or an alias.
            table: an empty table made by `penstock.table`.
            table_name: `[database.]name`.
            cache_limit: most rows in memory on each node; more than 100,000 are lowered to that,
                which the metadata show.
            key_column: one column or several: of rows with the same key only the first is kept.
            retention_minutes: how long rows are kept.
            pre_cache: rows loaded back into memory at a node's start; by default as many as fit.
            filter_column: that subscriptions filter by when they name none.
            timestamp_column: a column that the leader fills with the time of arrival.

        Raises:
            PenstockError: whatever is wrong, naming the argument.
        """
        check_arguments(table, raft_group, cache_limit)
        options = [f"retention_minutes={retention_minutes:g}"]
        if key_column is not None:
            keys = [key_column] if isinstance(key_column, str) else list(key_column)
            options.append(f"key_column={quote_text(', '.join(quote_name(k) for k in keys))}")
        options += option("pre_cache", pre_cache)
        options += option("filter_column", filter_column, quote_text)
        options += option("timestamp_column", timestamp_column, quote_text)
        return self._make_stream_table(raft_group, table, table_name, cache_limit, options)

    def _make_stream_table(
        self,
        raft_group: int | str,
        table: TableDefinition,
        table_name: str,
        cache_limit: int,
        options: Sequence[str],
    ) -> StreamTable:
        name = self.table_name(table_name)
        if "." not in table_name and self._default_database() is None:
            self.execute(f"CREATE DATABASE IF NOT EXISTS {DEFAULT_DATABASE}")
        group = raft_group if isinstance(raft_group, int) else quote_text(raft_group)
        inside = ", ".join([f"raft_group={group}", f"cache_limit={cache_limit}", *options])
        self.execute(
            f"CREATE STREAM TABLE {spell_path(name)} ({table.columns_sql()}) WITH ({inside})"
        )
        self._nodes.refresh()
        return StreamTable(self, name)

    def haStreamTable(  # noqa: N802
        self,
        raftGroup: int | str,
        table: TableDefinition,
        tableName: str,
        cacheLimit: int,  # noqa: N803
        keyColumn: str | Sequence[str] | None = None,
        retentionMinutes: float = 1440,
        preCache: int | None = None,  # noqa: N803
    ) -> StreamTable:
        """`ha_stream_table` under the name and with the arguments of the reference."""
        return self.ha_stream_table(
            raftGroup, table, tableName, cacheLimit, keyColumn, retentionMinutes, pre_cache=preCache
        )

    def share(
        self,
        table: StreamDefinition,
        table_name: str,
        *,
        raft_group: int | str | None = None,
        cache_limit: int = 100_000,
    ) -> StreamTable:
        """Make a stream table that was only defined, for everybody to see: the reference's `share t
        as name`. Rows are kept as by `haStreamTable`.

        Args:
            table: from `penstock.streamTable`, `keyedStreamTable`, `latestKeyedStreamTable` or
                `changelogStreamTable`.
            table_name: `[database.]name`.
            raft_group: the group that keeps it; by default the first one there is.
            cache_limit: most rows in memory on each node.

        Raises:
            PenstockError: whatever is wrong.
        """
        return self._share(table, table_name, raft_group, cache_limit, [])

    def enable_table_share_and_persistence(
        self,
        table: StreamDefinition,
        table_name: str,
        asyn_write: bool = True,
        compress: bool = True,
        cache_size: int | None = None,
        retention_minutes: float = 1440,
        flush_mode: int = 0,
        pre_cache: int | None = None,
        cache_purge_time_column: str | None = None,
        cache_purge_interval: str | timedelta | None = None,
        cache_retention_time: str | timedelta | None = None,
        *,
        raft_group: int | str | None = None,
    ) -> StreamTable:
        """The same, saying when a row counts as kept and what stays in memory.

        Args:
            table: as for `share`.
            table_name: `[database.]name`.
            asyn_write: `append` does not wait for the log; what is under way is lost with the
                program.
            compress: nodes compress their files.
            cache_size: most rows in memory on each node; by default 100,000, the most.
            retention_minutes: how long rows are kept.
            flush_mode: 1: Kafka syncs each record to disk before it counts.
            pre_cache: rows loaded back into memory at a node's start; by default as many as fit.
            cache_purge_time_column: rows leave memory by this time …
            cache_purge_interval: … once the oldest is so much older than the newest (`"7h"`, or a
                timedelta) …
            cache_retention_time: … and those stay that are at most so much older.
            raft_group: the group that keeps it; by default the first one there is.

        Raises:
            PenstockError: whatever is wrong.
        """
        options = [
            f"async_write={asyn_write}",
            f"compress={compress}",
            f"retention_minutes={retention_minutes:g}",
            f"flush_mode={flush_mode}",
        ]
        options += option("pre_cache", pre_cache)
        options += option("cache_purge_time_column", cache_purge_time_column, quote_text)
        options += option("cache_purge_interval", cache_purge_interval, spell_duration)
        options += option("cache_retention_time", cache_retention_time, spell_duration)
        return self._share(
            table, table_name, raft_group, 100_000 if cache_size is None else cache_size, options
        )

    def enableTableShareAndPersistence(  # noqa: N802
        self,
        table: StreamDefinition,
        tableName: str,
        asynWrite: bool = True,
        compress: bool = True,  # noqa: N803
        cacheSize: int | None = None,
        retentionMinutes: float = 1440,
        flushMode: int = 0,
        preCache: int | None = None,  # noqa: N803
        cachePurgeTimeColumn: str | None = None,
        cachePurgeInterval: str | timedelta | None = None,  # noqa: N803
        cacheRetentionTime: str | timedelta | None = None,  # noqa: N803
    ) -> StreamTable:
        """`enable_table_share_and_persistence` under the name and with the arguments of the
        reference.
        """
        return self.enable_table_share_and_persistence(
            table,
            tableName,
            asynWrite,
            compress,
            cacheSize,
            retentionMinutes,
            flushMode,
            preCache,
            cachePurgeTimeColumn,
            cachePurgeInterval,
            cacheRetentionTime,
        )

    def _share(
        self,
        table: StreamDefinition,
        table_name: str,
        raft_group: int | str | None,
        cache_limit: int,
        options: Sequence[str],
    ) -> StreamTable:
        if not isinstance(table, StreamDefinition):
            hint = (
                "penstock.streamTable, keyedStreamTable, latestKeyedStreamTable and"
                " changelogStreamTable make some"
            )
            raise SchemaError(
                f"only a stream table can be shared, not {type(table).__name__}",
                code="E_BODY",
                hint=hint,
            )
        if raft_group is None:
            groups = self._nodes.groups()
            # without any, the gateway says what is missing
            raft_group = groups[0]["id"] if groups else 2
        stream_table = self._make_stream_table(
            raft_group, table, table_name, cache_limit, [*table.options_sql(), *options]
        )
        if table.values:
            stream_table.append(table.values)
        return stream_table

    def get_stream_table_changelog(self, table: str | StreamTable) -> Result:
        """All rows in memory of a changelog with their `changelog_type`. Raises SchemaError: it is
        none.
        """
        return (table if isinstance(table, StreamTable) else self.stream_table(table)).changelog()

    getStreamTableChangelog = get_stream_table_changelog  # noqa: N815

    def stream_table(self, name: str) -> StreamTable:
        """A stream table that exists. Raises CatalogError."""
        qualified = self.table_name(name)
        self._nodes.group_of(qualified)
        return StreamTable(self, qualified)

    def drop_stream_table(self, name: str, force: bool = False) -> None:
        """Drop it on all its nodes. Raises CatalogError: there are subscriptions (`E_IN_USE`);
        *force* does not help against that.
        """
        if force:
            raise CatalogError(
                "a highly available stream table is not dropped by force",
                code="E_IN_USE",
                hint="unsubscribe first, then drop",
            )
        self.execute(f"DROP TABLE {spell_path(self.table_name(name))}")
        self._nodes.refresh()

    dropStreamTable = drop_stream_table  # noqa: N815

    # ---------------------------------------------------------------- how things are

    def get_streaming_leader(self, group_id: int | str) -> str:
        """Return the alias of the node that leads. Raises RemoteError: nobody does at the moment
        (`E_NO_LEADER`).
        """
        group = self._nodes.group(group_id)
        leader = self._nodes.leader(group["id"], of_all=True)
        if leader is None:
            raise RemoteError(
                f"group {group['id']} has no leader at the moment",
                code="E_NO_LEADER",
                hint="try again in a second",
            )
        return leader.node

    getStreamingLeader = get_streaming_leader  # noqa: N815

    def get_streaming_raft_groups(self, node: str | None = None) -> Result:
        """List every group, or those of *node*: columns `id` and `sites` (`host:port:alias`,
        separated by commas).
        """
        self._nodes.refresh()
        rows = []
        for group in self._nodes.groups():
            nodes = [*group["members"], *group["learners"]]
            if node is None or node in nodes:
                rows.append(
                    {
                        "id": group["id"],
                        "sites": ",".join(f"{self._site(n)}:{n}" for n in group["members"]),
                    }
                )
        return Result(
            pa.Table.from_pylist(
                rows, schema=pa.schema([("id", pa.int64()), ("sites", pa.string())])
            )
        )

    getStreamingRaftGroups = get_streaming_raft_groups  # noqa: N815

    def _site(self, node: str) -> str:
        try:
            return self._nodes.url(node).partition("://")[2]
        except RemoteError:
            return ":"

    def get_streaming_stat(self) -> dict[str, list[dict[str, Any]]]:
        """What nodes publish and keep (`pubConns`, `pubTables`, `persistWorkers`), and this side of
        it (`subConns`, `subWorkers`).
        """
        found: dict[str, list[dict[str, Any]]] = {
            "pubConns": [],
            "pubTables": [],
            "persistWorkers": [],
            "nodesAway": [],
        }
        self._nodes.refresh()
        for name in dict.fromkeys(
            n for g in self._nodes.groups() for n in (*g["members"], *g["learners"])
        ):
            try:
                answer = self._nodes.ask(self._nodes.url(name), "/v1/stat", seconds=2.0)
            except PenstockError as away:
                found["nodesAway"].append({"node": name, "why": away.message})
                continue
            for part in ("pubConns", "pubTables", "persistWorkers"):
                found[part] += [{"node": name, **line} for line in answer[part]]
        workers = [s.to_dict() for s in list(self._subscriptions.values())]
        connections = [
            {"publisher": w["node"], "topic": w["topic"]} for w in workers if w["running"]
        ]
        return {**found, "subConns": connections, "subWorkers": workers, "udpPubTables": []}

    getStreamingStat = get_streaming_stat  # noqa: N815

    def get_persistence_meta(
        self, table: str | StreamTable, *, node: str | None = None
    ) -> dict[str, Any]:
        """Sizes and positions of a stream table on its leader, or on *node*."""
        name = table.name if isinstance(table, StreamTable) else self.table_name(table)
        meta: dict[str, Any] = self._describe(name, node)["meta"]
        return meta

    getPersistenceMeta = get_persistence_meta  # noqa: N815

    def describe_table(self, name: str) -> dict[str, Any]:
        """Columns, group and leader of a stream table; `schema` is Arrow's, without row_id."""
        found = self._describe(name, None)
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(found["schema"])))
        return {**found, "schema": pa.schema([f for f in schema if f.name != ROW_ID])}

    def memory_rows(self, name: str, *, node: str | None = None) -> Result:
        """Rows of a stream table in memory, on its leader or on *node*."""
        urls = [self._nodes.url(node)] if node else self._of_group(name)
        return Result(from_stream(self._nodes.ask_any(urls, table_path(name, "/rows"))))

    def appender(self, name: str, *, window: int = 256, patience: float = 60.0) -> Appender:
        """A producer of its own for a stream table: rows in order, each once, many under way."""
        qualified = self.table_name(name)
        return Appender(
            self._nodes,
            qualified,
            self._nodes.group_of(qualified),
            window=window,
            patience=patience,
        )

    def _describe(self, name: str, node: str | None) -> dict[str, Any]:
        urls = [self._nodes.url(node)] if node else self._of_group(name)
        found: dict[str, Any] = self._nodes.ask_any(urls, table_path(name))
        return found
