"""Stream tables of raft groups for users who know the reference's functions: each under its own name and as a method in Python's style.

Owns the arguments' names, order and defaults. What they do is SQL to the gateway (making and dropping), a producer (`append`), a
subscription, or a question to the nodes.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import httpx
import pyarrow as pa

from penstock.client.appender import Appender
from penstock.client.nodes import Nodes
from penstock.client.result import Result
from penstock.client.stream_definitions import StreamDefinition
from penstock.client.table_handles import SINK_KEY, PartitionedTable, StreamTable, TableDefinition, quoted
from penstock.client.table_subscription import ROW_ID, Executors, Options, TableSubscription, filter_of
from penstock.client.wire import Rows, from_stream
from penstock.errors import CatalogError, PenstockError, RemoteError, SchemaError

#: database of stream tables whose name has none, on a connection that has none
DEFAULT_DATABASE = "ha"
_SCHEMES = ("VALUE", "RANGE", "HASH", "LIST", "COMPO", "SEQ")
_MAX_PARTITIONS = 16
Handler = Callable[..., Any]


class Database:
    """What `database` gives: the place for partitioned tables."""

    def __init__(self, client: StreamTables, name: str) -> None:
        self._client, self.name = client, name

    def create_partitioned_table(
        self, table: TableDefinition, table_name: str, partition_columns: str | Sequence[str] = (), *, keep: str | None = None
    ) -> PartitionedTable:
        """A table for rows to stay. Rows are spread over partitions by table name here, so *partition_columns* are only checked.

        Args:
            table: its columns, the time first.
            table_name: its name.
            partition_columns: columns that the reference would partition by.
            keep: how long rows stay, as in SQL: `30d`; None: for ever.
        """
        wanted = [partition_columns] if isinstance(partition_columns, str) else list(partition_columns)
        unknown = [c for c in wanted if c.lower() not in {n.lower() for n in table.names}]
        if unknown:
            raise CatalogError(f"partition column {unknown[0]} is no column of the table", code="E_NO_COLUMN")
        first, *others = table.columns_sql().split(", ", 1)
        columns = ", ".join([first, f"{SINK_KEY} BIGINT COMPOSITE KEY", *others])
        kept = f" KEEP {keep}" if keep else ""
        self._client.execute(f"CREATE TABLE {quoted(self.name)}.{quoted(table_name)} ({columns}){kept}")
        return PartitionedTable(self._client, f"{self.name}.{table_name}", table.names)

    createPartitionedTable = create_partitioned_table  # noqa: N815

    def load_table(self, table_name: str) -> PartitionedTable:
        """A partitioned table that was made before. Raises CatalogError."""
        found = self._client.query(f"DESCRIBE {quoted(self.name)}.{quoted(table_name)}")
        return PartitionedTable(self._client, f"{self.name}.{table_name}", [str(r[0]) for r in found.rows if r[0] != SINK_KEY])


class StreamTables(ABC):
    """The part of a connection that deals with stream tables."""

    _nodes_made: Nodes | None = None
    _context: ssl.SSLContext | None = None
    _executors_made: Executors | None = None

    def __init__(self) -> None:
        self._subscriptions: dict[tuple[str, str], TableSubscription] = {}
        self._stream_lock = threading.RLock()

    @abstractmethod
    def execute(self, sql: str, *, database: str | None = None, idempotency_key: str | None = None) -> int: ...
    @abstractmethod
    def query(self, sql: str, *, database: str | None = None) -> Result: ...
    @abstractmethod
    def write(self, table: str, rows: Rows, *, idempotency_key: str | None = None) -> int: ...
    @abstractmethod
    def _send(self, path: str, body: bytes | None, kind: str, headers: dict[str, str]) -> httpx.Response: ...
    @abstractmethod
    def _header(self) -> str: ...
    @abstractmethod
    def _default_database(self) -> str | None: ...

    # ---------------------------------------------------------------- making and dropping

    def ha_stream_table(
        self, raft_group: int | str, table: TableDefinition, table_name: str, cache_limit: int,
        key_column: str | Sequence[str] | None = None, retention_minutes: float = 1440, *, pre_cache: int | None = None,
        filter_column: str | None = None, timestamp_column: str | None = None,
    ) -> StreamTable:  # fmt: skip
        """Make a highly available stream table and return it when every node has it and one leads it.

        Args:
            raft_group: the group that keeps it: an id greater than 1, or an alias.
            table: an empty table made by `penstock.table`.
            table_name: `[database.]name`.
            cache_limit: most rows in memory on each node; more than 100,000 are lowered to that, which the metadata show.
            key_column: one column or several: of rows with the same key only the first is kept.
            retention_minutes: how long rows are kept.
            pre_cache: rows loaded back into memory at a node's start; None: as many as fit.
            filter_column: that subscriptions filter by when they name none.
            timestamp_column: a column that the leader fills with the time of arrival.

        Raises:
            PenstockError: whatever is wrong, naming the argument.
        """
        if not isinstance(table, TableDefinition) or isinstance(table, StreamDefinition):
            kind = "a stream table" if isinstance(table, (StreamDefinition, StreamTable)) else type(table).__name__
            raise SchemaError(f"table must be an empty table made by penstock.table, not {kind}", code="E_BODY")
        if len(table):
            raise SchemaError(f"table must be empty, it has {len(table)} rows", code="E_BODY", hint="make it from names and types alone")
        if isinstance(raft_group, bool) or not isinstance(raft_group, (int, str)):
            raise CatalogError(f"raftGroup must be an integer greater than 1 or an alias, not {raft_group!r}", code="E_RAFT_GROUP")
        for argument, value in (("cacheLimit", cache_limit),):
            if isinstance(value, bool) or not isinstance(value, int):
                raise SchemaError(f"{argument} must be an integer, not {value!r}", code="E_BODY")
        options = [f"retention_minutes={retention_minutes:g}"]
        if key_column is not None:
            keys = [key_column] if isinstance(key_column, str) else list(key_column)
            options.append(f"key_column={_text(', '.join(quoted(k) for k in keys))}")
        options += [f"pre_cache={pre_cache}"] if pre_cache is not None else []
        options += [f"filter_column={_text(filter_column)}"] if filter_column is not None else []
        options += [f"timestamp_column={_text(timestamp_column)}"] if timestamp_column is not None else []
        return self._make_stream_table(raft_group, table, table_name, cache_limit, options)

    def _make_stream_table(
        self, raft_group: int | str, table: TableDefinition, table_name: str, cache_limit: int, options: Sequence[str]
    ) -> StreamTable:
        name = self.table_name(table_name)
        if "." not in table_name and self._default_database() is None:
            self.execute(f"CREATE DATABASE IF NOT EXISTS {DEFAULT_DATABASE}")
        group = raft_group if isinstance(raft_group, int) else _text(raft_group)
        inside = ", ".join([f"raft_group={group}", f"cache_limit={cache_limit}", *options])
        self.execute(f"CREATE STREAM TABLE {_path(name)} ({table.columns_sql()}) WITH ({inside})")
        self._nodes.refresh()
        return StreamTable(self, name)

    def haStreamTable(  # noqa: N802
        self, raftGroup: int | str, table: TableDefinition, tableName: str, cacheLimit: int,  # noqa: N803
        keyColumn: str | Sequence[str] | None = None, retentionMinutes: float = 1440, preCache: int | None = None,  # noqa: N803
    ) -> StreamTable:  # fmt: skip
        """`ha_stream_table` under the name and with the arguments of the reference."""
        return self.ha_stream_table(raftGroup, table, tableName, cacheLimit, keyColumn, retentionMinutes, pre_cache=preCache)

    def share(
        self, table: StreamDefinition, table_name: str, *, raft_group: int | str | None = None, cache_limit: int = 100_000
    ) -> StreamTable:
        """Make a stream table that was only defined, for everybody to see: the reference's `share t as name`. Rows are kept as by
        `haStreamTable`.

        Args:
            table: from `penstock.streamTable`, `keyedStreamTable`, `latestKeyedStreamTable` or `changelogStreamTable`.
            table_name: `[database.]name`.
            raft_group: the group that keeps it; None: the first one there is.
            cache_limit: most rows in memory on each node.

        Raises:
            PenstockError: whatever is wrong.
        """
        return self._share(table, table_name, raft_group, cache_limit, [])

    def enable_table_share_and_persistence(
        self, table: StreamDefinition, table_name: str, asyn_write: bool = True, compress: bool = True, cache_size: int | None = None,
        retention_minutes: float = 1440, flush_mode: int = 0, pre_cache: int | None = None, cache_purge_time_column: str | None = None,
        cache_purge_interval: str | timedelta | None = None, cache_retention_time: str | timedelta | None = None, *,
        raft_group: int | str | None = None,
    ) -> StreamTable:  # fmt: skip
        """The same, saying when a row counts as kept and what stays in memory.

        Args:
            table: as for `share`.
            table_name: `[database.]name`.
            asyn_write: `append` does not wait for the log; what is under way is lost with the program.
            compress: nodes compress their files.
            cache_size: most rows in memory on each node; None: 100,000, the most there may be.
            retention_minutes: how long rows are kept.
            flush_mode: 1: Kafka syncs each record to disk before it counts.
            pre_cache: rows loaded back into memory at a node's start; None: as many as fit.
            cache_purge_time_column: rows leave memory by this time …
            cache_purge_interval: … once the oldest is so much older than the newest (`"7h"`, or a timedelta) …
            cache_retention_time: … and those stay that are at most so much older.
            raft_group: the group that keeps it; None: the first one there is.

        Raises:
            PenstockError: whatever is wrong.
        """
        options = [f"async_write={asyn_write}", f"compress={compress}", f"retention_minutes={retention_minutes:g}"]
        options += [f"flush_mode={flush_mode}"]
        options += [f"pre_cache={pre_cache}"] if pre_cache is not None else []
        options += [f"cache_purge_time_column={_text(cache_purge_time_column)}"] if cache_purge_time_column is not None else []
        options += [f"cache_purge_interval={_duration(cache_purge_interval)}"] if cache_purge_interval is not None else []
        options += [f"cache_retention_time={_duration(cache_retention_time)}"] if cache_retention_time is not None else []
        return self._share(table, table_name, raft_group, 100_000 if cache_size is None else cache_size, options)

    def enableTableShareAndPersistence(  # noqa: N802
        self, table: StreamDefinition, tableName: str, asynWrite: bool = True, compress: bool = True,  # noqa: N803
        cacheSize: int | None = None, retentionMinutes: float = 1440, flushMode: int = 0, preCache: int | None = None,  # noqa: N803
        cachePurgeTimeColumn: str | None = None, cachePurgeInterval: str | timedelta | None = None,  # noqa: N803
        cacheRetentionTime: str | timedelta | None = None,  # noqa: N803
    ) -> StreamTable:  # fmt: skip
        """`enable_table_share_and_persistence` under the name and with the arguments of the reference."""
        return self.enable_table_share_and_persistence(
            table, tableName, asynWrite, compress, cacheSize, retentionMinutes, flushMode, preCache, cachePurgeTimeColumn,
            cachePurgeInterval, cacheRetentionTime,
        )  # fmt: skip

    def _share(
        self, table: StreamDefinition, table_name: str, raft_group: int | str | None, cache_limit: int, options: Sequence[str]
    ) -> StreamTable:
        if not isinstance(table, StreamDefinition):
            hint = "penstock.streamTable, keyedStreamTable, latestKeyedStreamTable and changelogStreamTable make some"
            raise SchemaError(f"only a stream table can be shared, not {type(table).__name__}", code="E_BODY", hint=hint)
        if raft_group is None:
            groups = self._nodes.groups()
            raft_group = groups[0]["id"] if groups else 2  # without any, the gateway says what is missing
        made = self._make_stream_table(raft_group, table, table_name, cache_limit, [*table.options_sql(), *options])
        if table.values:
            made.append(table.values)
        return made

    def get_stream_table_changelog(self, table: str | StreamTable) -> Result:
        """All rows in memory of a changelog with their `changelog_type`. Raises SchemaError: it is none."""
        return (table if isinstance(table, StreamTable) else self.stream_table(table)).changelog()

    getStreamTableChangelog = get_stream_table_changelog  # noqa: N815

    def stream_table(self, name: str) -> StreamTable:
        """A stream table that exists. Raises CatalogError."""
        qualified = self.table_name(name)
        self._nodes.group_of(qualified)
        return StreamTable(self, qualified)

    def drop_stream_table(self, name: str, force: bool = False) -> None:
        """Drop it on all its nodes. Raises CatalogError: there are subscriptions (`E_IN_USE`); *force* does not help against that."""
        if force:
            raise CatalogError(
                "a highly available stream table is not dropped by force", code="E_IN_USE", hint="unsubscribe first, then drop"
            )
        self.execute(f"DROP TABLE {_path(self.table_name(name))}")
        self._nodes.refresh()

    dropStreamTable = drop_stream_table  # noqa: N815

    # ---------------------------------------------------------------- subscriptions

    def subscribe_table(
        self, server: str | None, table_name: str, action_name: str = "", offset: int = -1, handler: Handler | Any = None,
        msg_as_table: bool = False, batch_size: int = 0, throttle: float = 1.0, hash: int = -1, reconnect: bool = False,
        filter: Any = None, persist_offset: bool = False, time_trigger: bool = False, handler_need_msg_id: bool = False,
        raft_group: int | str | None = None,
    ) -> TableSubscription:  # fmt: skip
        """Have *handler* called with rows as they come.

        Args:
            server: alias or address of any node of the group; None: the leader.
            table_name: `[database.]name`.
            action_name: tells this subscription from others of the same table.
            offset: a row; 0 the first, -1 from now on, -2 behind what was processed (with *persist_offset*), -3 the earliest there is.
            handler: a function, or a table (anything with `append`).
            msg_as_table: messages are tables (`Message`), else lists of columns.
            batch_size: call when this many rows have come, or more; 0: with every block that comes.
            throttle: seconds after which fewer rows than *batch_size* are handed over.
            hash: subscriptions of the same hash (modulo threads) are called by one thread; -1: by its own.
            reconnect: go to the new leader when the connection or the leader is lost. A subscription without it ends there.
            filter: a condition in SQL, a list of values, a pair of bounds, or `("hash", buckets, index)`.
            persist_offset: the group keeps how far rows are processed.
            time_trigger: call every *throttle* seconds, rows or not.
            handler_need_msg_id: the handler gets the id of the last row as well.
            raft_group: programs that subscribe with the same group, table and action stand in for each other: one of them gets the rows,
                and when it is gone the next one, from the row behind what was processed. Implies *reconnect* and *persist_offset*.

        Raises:
            PenstockError: the table, the offset or the filter is wrong, or there is such a subscription already (`E_SUBSCRIPTION_EXISTS`).
        """
        if handler is None:
            raise SchemaError("a subscription needs a handler", code="E_BODY", hint="a function, or a table")
        call = handler if callable(handler) else handler.append
        shared = int(self._nodes.group(raft_group)["id"]) if raft_group is not None else None
        reconnect, persist_offset = reconnect or shared is not None, persist_offset or shared is not None
        if not reconnect:
            warnings.warn("without reconnect=True the subscription ends with its leader", stacklevel=2)
        name = self.table_name(table_name)
        group = self._nodes.group_of(name)
        options = Options(
            msg_as_table or hasattr(handler, "append") or hasattr(getattr(handler, "__self__", None), "append"), batch_size, throttle,
            hash, reconnect, filter_of(filter), persist_offset, time_trigger, handler_need_msg_id, shared,
        )  # fmt: skip
        key = (name.lower(), action_name)
        with self._stream_lock:
            known = self._subscriptions.get(key)
            if known is not None and not known.wait(0):
                hint = "choose another actionName"
                raise CatalogError(f"subscription {known.topic} exists", code="E_SUBSCRIPTION_EXISTS", hint=hint)
            made = TableSubscription(
                self._nodes, name, group, action_name, offset, call, options, self._executors, node=server or ""
            )  # fmt: skip
            self._subscriptions[key] = made.open()
        return made

    def subscribeTable(  # noqa: N802
        self, server: str | None, tableName: str, actionName: str = "", offset: int = -1, handler: Handler | Any = None,  # noqa: N803
        msgAsTable: bool = False, batchSize: int = 0, throttle: float = 1.0, hash: int = -1, reconnect: bool = False,  # noqa: N803
        filter: Any = None, persistOffset: bool = False, timeTrigger: bool = False, handlerNeedMsgId: bool = False,  # noqa: N803
        raftGroup: int | str | None = None,  # noqa: N803
    ) -> str:  # fmt: skip
        """`subscribe_table` under the name and with the arguments of the reference; the subscription's topic."""
        return self.subscribe_table(
            server, tableName, actionName, offset, handler, msgAsTable, batchSize, throttle, hash, reconnect, filter, persistOffset,
            timeTrigger, handlerNeedMsgId, raftGroup,
        ).topic  # fmt: skip

    def unsubscribe_table(
        self, server: str | None, table_name: str, action_name: str = "", remove_offset: bool = True, raft_group: int | str | None = None
    ) -> None:
        """End a subscription, whoever has made it and whichever node it is at.

        Args:
            server: alias or address of any node of the group; None: any.
            table_name: `[database.]name`.
            action_name: as in `subscribe_table`.
            remove_offset: forget how far it was.
            raft_group: as in `subscribe_table`; the subscription ends in all its programs.

        Raises:
            CatalogError: there is none (`E_NO_SUBSCRIPTION`), or its raftGroup is another one (`E_RAFT_GROUP`).
        """
        name = self.table_name(table_name)
        with self._stream_lock:
            own = self._subscriptions.get((name.lower(), action_name))
        running = own is not None and not own.wait(0)
        urls = [self._nodes.url(server)] if server else self._of_group(name)
        body = {"table": name, "action": action_name, "remove_offset": remove_offset, "raft_group": raft_group}
        try:
            self._nodes.ask_any([*urls, *self._of_group(name)], "/v1/unsubscribe", body)
        except PenstockError as error:
            if error.code == "E_RAFT_GROUP":
                own = None  # it goes on
            if error.code != "E_NO_SUBSCRIPTION" or not running:
                raise
        finally:
            if own is not None:
                with self._stream_lock:
                    self._subscriptions.pop((name.lower(), action_name), None)
                own.close()

    def unsubscribeTable(  # noqa: N802
        self, server: str | None, tableName: str, actionName: str = "", removeOffset: bool = True,  # noqa: N803
        raftGroup: int | str | None = None,  # noqa: N803
    ) -> None:  # fmt: skip
        """`unsubscribe_table` under the name of the reference."""
        self.unsubscribe_table(server, tableName, actionName, removeOffset, raftGroup)

    def subscription(self, topic: str) -> TableSubscription:
        """A running subscription of this connection by its topic. Raises CatalogError."""
        for found in self._subscriptions.values():
            if found.topic == topic:
                return found
        raise CatalogError(f"there is no subscription {topic}", code="E_NO_SUBSCRIPTION")

    def get_topic_processed_offset(self, topic: str) -> int:
        """The last row that a subscription with a kept offset has processed; -1 for none.

        Args:
            topic: as `subscribeTable` gave it: `group/database.table/action`.
        """
        _, _, rest = topic.partition("/")
        name, _, action = rest.partition("/")
        found = self._nodes.ask_any(self._of_group(name), _table_path(name, f"/offset?action={action}"))
        return int(found["row"]) - 1 if found["row"] > 0 else -1

    getTopicProcessedOffset = get_topic_processed_offset  # noqa: N815

    # ---------------------------------------------------------------- how things are

    def get_streaming_leader(self, group_id: int | str) -> str:
        """Alias of the node that leads. Raises RemoteError: nobody does at the moment (`E_NO_LEADER`)."""
        group = self._nodes.group(group_id)
        leader = self._nodes.leader(group["id"], of_all=True)
        if leader is None:
            raise RemoteError(f"group {group['id']} has no leader at the moment", code="E_NO_LEADER", hint="try again in a second")
        return leader.node

    getStreamingLeader = get_streaming_leader  # noqa: N815

    def get_streaming_raft_groups(self, node: str | None = None) -> Result:
        """Every group, or those of *node*: columns `id` and `sites` (`host:port:alias`, separated by commas)."""
        self._nodes.refresh()
        rows = []
        for group in self._nodes.groups():
            nodes = [*group["members"], *group["learners"]]
            if node is None or node in nodes:
                rows.append({"id": group["id"], "sites": ",".join(f"{self._site(n)}:{n}" for n in group["members"])})
        return Result(pa.Table.from_pylist(rows, schema=pa.schema([("id", pa.int64()), ("sites", pa.string())])))

    getStreamingRaftGroups = get_streaming_raft_groups  # noqa: N815

    def _site(self, node: str) -> str:
        try:
            return self._nodes.url(node).partition("://")[2]
        except RemoteError:
            return ":"

    def get_streaming_stat(self) -> dict[str, list[dict[str, Any]]]:
        """What nodes publish and keep (`pubConns`, `pubTables`, `persistWorkers`), and this side of it (`subConns`, `subWorkers`)."""
        found: dict[str, list[dict[str, Any]]] = {"pubConns": [], "pubTables": [], "persistWorkers": [], "nodesAway": []}
        self._nodes.refresh()
        for name in dict.fromkeys(n for g in self._nodes.groups() for n in (*g["members"], *g["learners"])):
            try:
                answer = self._nodes.ask(self._nodes.url(name), "/v1/stat", seconds=2.0)
            except PenstockError as away:
                found["nodesAway"].append({"node": name, "why": away.message})
                continue
            for part in ("pubConns", "pubTables", "persistWorkers"):
                found[part] += [{"node": name, **line} for line in answer[part]]
        workers = [s.to_dict() for s in list(self._subscriptions.values())]
        connections = [{"publisher": w["node"], "topic": w["topic"]} for w in workers if w["running"]]
        return {**found, "subConns": connections, "subWorkers": workers, "udpPubTables": []}

    getStreamingStat = get_streaming_stat  # noqa: N815

    def get_persistence_meta(self, table: str | StreamTable, *, node: str | None = None) -> dict[str, Any]:
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
        return Result(from_stream(self._nodes.ask_any(urls, _table_path(name, "/rows"))))

    def appender(self, name: str, *, window: int = 256, patience: float = 60.0) -> Appender:
        """A producer of its own for a stream table: rows in order, each once, many under way."""
        qualified = self.table_name(name)
        return Appender(self._nodes, qualified, self._nodes.group_of(qualified), window=window, patience=patience)

    def _describe(self, name: str, node: str | None) -> dict[str, Any]:
        urls = [self._nodes.url(node)] if node else self._of_group(name)
        found: dict[str, Any] = self._nodes.ask_any(urls, _table_path(name))
        return found

    def _of_group(self, name: str) -> list[str]:
        """Addresses of the nodes with copies, the leader first."""
        group = self._nodes.group_of(name)
        members = self._nodes.members(group)
        leader = self._nodes.leader(group)
        first = [leader.url] if leader is not None and leader.url else []
        return [*first, *(m for m in members if m not in first)]

    # ---------------------------------------------------------------- databases for rows to stay

    def exists_database(self, name: str) -> bool:
        """Whether there is a database; `dfs://stock` means stock."""
        wanted = _database(name).lower()
        return any(str(row[0]).lower() == wanted for row in self.query("SHOW DATABASES").rows)

    existsDatabase = exists_database  # noqa: N815

    def drop_database(self, name: str) -> None:
        """Drop a database with its tables. Raises CatalogError."""
        self.execute(f"DROP DATABASE {quoted(_database(name))}")

    dropDatabase = drop_database  # noqa: N815

    def make_database(self, name: str, partition_type: str | None = None, partition_scheme: Sequence[Any] | None = None) -> Database:
        """Make a database, or take the one there is: the reference's `database`.

        Args:
            name: `stock` or `dfs://stock`.
            partition_type: VALUE, RANGE, HASH, …; rows are spread by their table's name here.
            partition_scheme: one entry per partition: a database gets as many partitions, at most 16.
        """
        if partition_type is not None and str(partition_type).upper() not in _SCHEMES:
            raise SchemaError(f"no such partition type: {partition_type}", code="E_BODY", hint=f"one of {', '.join(_SCHEMES)}")
        count = min(max(len(partition_scheme or ()), 1), _MAX_PARTITIONS) if partition_scheme is not None else 4
        self.execute(f"CREATE DATABASE IF NOT EXISTS {quoted(_database(name))} PARTITIONS {count}")
        return Database(self, _database(name))

    # ---------------------------------------------------------------- parts

    @property
    def _nodes(self) -> Nodes:
        with self._stream_lock:
            if self._nodes_made is None:
                fetch = lambda: json.loads(self._send("/v1/groups", None, "", {}).content)  # noqa: E731
                self._nodes_made = Nodes(fetch, self._header(), context=self._context)
            return self._nodes_made

    @property
    def _executors(self) -> Executors:
        if self._executors_made is None:
            self._executors_made = Executors()
        return self._executors_made

    def close_stream_tables(self) -> None:
        """End subscriptions and connections to nodes."""
        for subscription in list(self._subscriptions.values()):
            subscription.close()
        if self._executors_made is not None:
            self._executors_made.close()
        if self._nodes_made is not None:
            self._nodes_made.close()

    def table_name(self, name: str) -> str:
        """`database.table` of a stream table."""
        return name if "." in name else f"{self._default_database() or DEFAULT_DATABASE}.{name}"


def _database(name: str) -> str:
    return name.partition("://")[2] if "://" in name else name


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _duration(given: str | timedelta) -> str:
    """As SQL has it; the reference's units are upper case."""
    return f"{given // timedelta(milliseconds=1)}a" if isinstance(given, timedelta) else _text(given.lower())


def _path(name: str) -> str:
    return ".".join(quoted(part) for part in name.split(".", 1))


def _table_path(name: str, rest: str = "") -> str:
    database, _, table = name.partition(".")
    return f"/v1/tables/{database}/{table}{rest}"
