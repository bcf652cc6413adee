"""Functions for stream tables under DolphinDB's names, with its arguments in its order.

Each takes what it works with first: a connection, or the `Database` of `database`.

    from penstock.compat import dolphindb as ddb

    trades = ddb.haStreamTable(client, 11, ddb.table(["ts", "sym"], types), "trades", 100000)
    ddb.subscribeTable(client, None, "trades", "watch", -1, print, True, reconnect=True)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from penstock.client.connection import Connection
from penstock.client.databases import Database
from penstock.client.result import Result
from penstock.client.stream_definitions import (
    StreamDefinition,
    changelog_stream_table,
    keyed_stream_table,
    latest_keyed_stream_table,
    stream_table,
)
from penstock.client.stream_table_options import StreamTableOptions
from penstock.client.subscription_options import SubscriptionOptions
from penstock.client.table_handles import PartitionedTable, StreamTable, TableDefinition, table

__all__ = [
    "changelogStreamTable",
    "createPartitionedTable",
    "database",
    "dropDatabase",
    "dropStreamTable",
    "enableTableShareAndPersistence",
    "existsDatabase",
    "getPersistenceMeta",
    "getStreamTableChangelog",
    "getStreamingLeader",
    "getStreamingRaftGroups",
    "getStreamingStat",
    "getTopicProcessedOffset",
    "haStreamTable",
    "keyedStreamTable",
    "latestKeyedStreamTable",
    "share",
    "streamTable",
    "subscribeTable",
    "table",
    "unsubscribeTable",
]

streamTable = stream_table
keyedStreamTable = keyed_stream_table
latestKeyedStreamTable = latest_keyed_stream_table
changelogStreamTable = changelog_stream_table

# ---------------------------------------------------------------- making and dropping


def haStreamTable(
    client: Connection,
    raftGroup: int | str,
    table: TableDefinition,
    tableName: str,
    cacheLimit: int,
    keyColumn: str | Sequence[str] | None = None,
    retentionMinutes: float = 1440,
    preCache: int | None = None,
) -> StreamTable:
    """Make a highly available stream table: `client.ha.create`."""
    options = StreamTableOptions(
        key_column=keyColumn, retention_minutes=retentionMinutes, pre_cache=preCache
    )
    return client.ha.create(raftGroup, table, tableName, cacheLimit, options)


def share(client: Connection, table: StreamDefinition, tableName: str) -> StreamTable:
    """Make a stream table that was only defined: `client.ha.share`. Rows are kept as by
    `haStreamTable`.
    """
    return client.ha.share(table, tableName)


def enableTableShareAndPersistence(
    client: Connection,
    table: StreamDefinition,
    tableName: str,
    asynWrite: bool = True,
    compress: bool = True,
    cacheSize: int | None = None,
    retentionMinutes: float = 1440,
    flushMode: int = 0,
    preCache: int | None = None,
    cachePurgeTimeColumn: str | None = None,
    cachePurgeInterval: str | timedelta | None = None,
    cacheRetentionTime: str | timedelta | None = None,
) -> StreamTable:
    """Make a stream table that was only defined, and say when a row counts as written:
    `client.ha.share` with options.
    """
    options = StreamTableOptions(
        retention_minutes=retentionMinutes,
        pre_cache=preCache,
        async_write=asynWrite,
        compress=compress,
        flush_mode=flushMode,
        cache_purge_time_column=cachePurgeTimeColumn,
        cache_purge_interval=cachePurgeInterval,
        cache_retention_time=cacheRetentionTime,
    )
    limit = 100_000 if cacheSize is None else cacheSize
    return client.ha.share(table, tableName, cache_limit=limit, options=options)


def dropStreamTable(client: Connection, tableName: str, force: bool = False) -> None:
    """Drop a stream table: `client.ha.drop`."""
    client.ha.drop(tableName, force)


# ---------------------------------------------------------------- subscriptions


def subscribeTable(
    client: Connection,
    server: str | None,
    tableName: str,
    actionName: str = "",
    offset: int = -1,
    handler: Callable[..., Any] | Any = None,
    msgAsTable: bool = False,
    batchSize: int = 0,
    throttle: float = 1.0,
    hash: int = -1,
    reconnect: bool = False,
    filter: Any = None,
    persistOffset: bool = False,
    timeTrigger: bool = False,
    handlerNeedMsgId: bool = False,
    raftGroup: int | str | None = None,
) -> str:
    """Have *handler* called with rows as they come, and return the subscription's topic:
    `client.ha.subscribe`.
    """
    options = SubscriptionOptions(
        msg_as_table=msgAsTable,
        batch_size=batchSize,
        throttle=throttle,
        hash=hash,
        reconnect=reconnect,
        filter=filter,
        persist_offset=persistOffset,
        time_trigger=timeTrigger,
        handler_need_msg_id=handlerNeedMsgId,
        raft_group=raftGroup,
    )
    subscription = client.ha.subscribe(
        tableName, handler, actionName, offset=offset, server=server, options=options
    )
    return subscription.topic


def unsubscribeTable(
    client: Connection,
    server: str | None,
    tableName: str,
    actionName: str = "",
    removeOffset: bool = True,
    raftGroup: int | str | None = None,
) -> None:
    """End a subscription: `client.ha.unsubscribe`."""
    client.ha.unsubscribe(
        tableName, actionName, server=server, remove_offset=removeOffset, raft_group=raftGroup
    )


def getTopicProcessedOffset(client: Connection, topic: str) -> int:
    """Return the last processed row of a topic; -1 for none: `client.ha.processed_offset`."""
    return client.ha.processed_offset(topic)


# ---------------------------------------------------------------- how things are


def getStreamTableChangelog(client: Connection, table: str | StreamTable) -> Result:
    """Return all rows in memory of a changelog with their `changelog_type`:
    `StreamTable.changelog`.
    """
    handle = table if isinstance(table, StreamTable) else client.ha.table(table)
    return handle.changelog()


def getStreamingLeader(client: Connection, groupId: int | str) -> str:
    """Return the alias of the node that leads: `client.ha.leader`."""
    return client.ha.leader(groupId)


def getStreamingRaftGroups(client: Connection, node: str | None = None) -> Result:
    """Return `id` and `sites` of every group, or of those of *node*: `client.ha.groups`."""
    return client.ha.groups(node)


def getStreamingStat(client: Connection) -> dict[str, list[dict[str, Any]]]:
    """Return what nodes publish, and the subscriptions of this connection: `client.ha.stat`."""
    return client.ha.stat()


def getPersistenceMeta(
    client: Connection, table: str | StreamTable, *, node: str | None = None
) -> dict[str, Any]:
    """Return sizes and positions of a stream table: `client.ha.meta`."""
    return client.ha.meta(table, node=node)


# ---------------------------------------------------------------- databases


def database(
    client: Connection,
    directory: str,
    partitionType: str | None = None,
    partitionScheme: Sequence[Any] | None = None,
) -> Database:
    """Make a database, or take the one there is: `client.ha.make_database`."""
    return client.ha.make_database(directory, partitionType, partitionScheme)


def existsDatabase(client: Connection, dbUrl: str) -> bool:
    """Tell whether there is a database: `client.ha.exists_database`."""
    return client.ha.exists_database(dbUrl)


def dropDatabase(client: Connection, dbUrl: str) -> None:
    """Drop a database with its tables: `client.ha.drop_database`."""
    client.ha.drop_database(dbUrl)


def createPartitionedTable(
    dbHandle: Database,
    table: TableDefinition,
    tableName: str,
    partitionColumns: str | Sequence[str] = (),
) -> PartitionedTable:
    """Make a table for rows to stay: `Database.create_partitioned_table`."""
    return dbHandle.create_partitioned_table(table, tableName, partitionColumns)
