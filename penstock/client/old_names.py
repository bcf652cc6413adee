"""Names and arguments of earlier versions, kept for one version with a DeprecationWarning.

The tables at the end say what each became. Type checkers do not see the old names. Those of the
package `penstock` itself are in its `__init__.py`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

from penstock.client.connection_options import ConnectionOptions
from penstock.client.stream_table_options import StreamTableOptions
from penstock.client.subscription_options import SubscriptionOptions

if TYPE_CHECKING:
    from penstock.client.connection import Connection

Call = Callable[..., Any]


@dataclass(frozen=True)
class Renamed:
    """What an old name became.

    Args:
        new: the new name, as the warning says it.
        call: takes the object, then the old arguments.
    """

    new: str
    call: Call


class OldNames:
    """Finds old names when there is no attribute. The call warns, not the look-up."""

    _OLD: ClassVar[Mapping[str, Renamed]] = {}

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Call:
            owner = type(self).__name__
            renamed = self._OLD.get(name)
            if renamed is None:
                raise AttributeError(f"{owner!r} object has no attribute {name!r}")

            def call(*positional: Any, **keywords: Any) -> Any:
                warn(f"{owner}.{name}", renamed.new)
                return renamed.call(self, *positional, **keywords)

            return call


def warn(old: str, new: str) -> None:
    """Warn whoever called the caller that *old* is deprecated."""
    warnings.warn(f"{old} is deprecated; use {new}", DeprecationWarning, stacklevel=3)


# ---------------------------------------------------------------- connecting


class OldKeywords(TypedDict, total=False):
    """Arguments of `connect` that are options now."""

    timezone: str
    timeout: float
    notifier_url: str | None
    ca: str | Path | None


def with_old_keywords(options: ConnectionOptions, old: OldKeywords) -> ConnectionOptions:
    """Return the options changed by old arguments. Raises TypeError: there never was such a one."""
    if not old:
        return options
    unknown = sorted(old.keys() - {field.name for field in fields(options)})
    if unknown:
        raise TypeError(f"unexpected keyword argument {unknown[0]!r}")
    names = ", ".join(f"{name}=…" for name in old)
    warnings.warn(
        f"connect(…, {names}) is deprecated; use options=ConnectionOptions({names})",
        DeprecationWarning,
        stacklevel=3,
    )
    return replace(options, **old)


# ---------------------------------------------------------------- arguments that changed

_CREATE = (
    "raft_group",
    "table",
    "table_name",
    "cache_limit",
    "key_column",
    "retention_minutes",
    "pre_cache",
)
_SHARE = (
    "table",
    "table_name",
    "async_write",
    "compress",
    "cache_limit",
    "retention_minutes",
    "flush_mode",
    "pre_cache",
    "cache_purge_time_column",
    "cache_purge_interval",
    "cache_retention_time",
)
_SUBSCRIBE = (
    "server",
    "table_name",
    "action_name",
    "offset",
    "handler",
    "msg_as_table",
    "batch_size",
    "throttle",
    "hash",
    "reconnect",
    "filter",
    "persist_offset",
    "time_trigger",
    "handler_need_msg_id",
    "raft_group",
)
_UNSUBSCRIBE = ("server", "table_name", "action_name", "remove_offset", "raft_group")
#: words of `enable_table_share_and_persistence` that have another name now
_WORDS = {"asyn_write": "async_write", "cache_size": "cache_limit"}


def _ha_stream_table(connection: Connection, *positional: Any, **keywords: Any) -> Any:
    given = _by_name(_CREATE, positional, keywords)
    options = StreamTableOptions(**_take_options(StreamTableOptions, given))
    return connection.ha.create(**given, options=options)


def _enable_sharing(connection: Connection, *positional: Any, **keywords: Any) -> Any:
    words = {_WORDS.get(name, name): value for name, value in keywords.items()}
    given = {"async_write": True, **_by_name(_SHARE, positional, words)}
    if given.get("cache_limit") is None:
        given.pop("cache_limit", None)
    options = StreamTableOptions(**_take_options(StreamTableOptions, given))
    return connection.ha.share(**given, options=options)


def _subscribe_table(connection: Connection, *positional: Any, **keywords: Any) -> Any:
    given = {"handler": None, **_by_name(_SUBSCRIBE, positional, keywords)}
    options = SubscriptionOptions(**_take_options(SubscriptionOptions, given))
    return connection.ha.subscribe(**given, options=options)


def _subscribe_for_topic(connection: Connection, *positional: Any, **keywords: Any) -> str:
    return str(_subscribe_table(connection, *positional, **keywords).topic)


def _unsubscribe_table(connection: Connection, *positional: Any, **keywords: Any) -> None:
    connection.ha.unsubscribe(**_by_name(_UNSUBSCRIBE, positional, keywords))


def _changelog(connection: Connection, table: Any) -> Any:
    handle = connection.ha.table(table) if isinstance(table, str) else table
    return handle.changelog()


def _by_name(
    names: Sequence[str], positional: Sequence[Any], keywords: Mapping[str, Any]
) -> dict[str, Any]:
    """Return arguments by name. Raises TypeError: there are too many, or one is given twice."""
    if len(positional) > len(names):
        raise TypeError(f"at most {len(names)} arguments, not {len(positional)}")
    by_position = dict(zip(names, positional, strict=False))
    twice = by_position.keys() & keywords.keys()
    if twice:
        raise TypeError(f"multiple values for argument {min(twice)!r}")
    return {**by_position, **keywords}


def _take_options(kind: type[Any], given: dict[str, Any]) -> dict[str, Any]:
    """Take what the dataclass *kind* has fields for out of the arguments."""
    return {field.name: given.pop(field.name) for field in fields(kind) if field.name in given}


# ---------------------------------------------------------------- the tables

#: methods of a connection that are methods of its `ha` now, with the same arguments
_ON_HA = {
    "appender": "appender",
    "close_stream_tables": "close",
    "describe_table": "describe",
    "drop_database": "drop_database",
    "drop_stream_table": "drop",
    "exists_database": "exists_database",
    "get_persistence_meta": "meta",
    "get_streaming_leader": "leader",
    "get_streaming_raft_groups": "groups",
    "get_streaming_stat": "stat",
    "get_topic_processed_offset": "processed_offset",
    "make_database": "make_database",
    "memory_rows": "memory_rows",
    "share": "share",
    "stream_table": "table",
    "subscription": "subscription",
    "table_name": "qualify",
}
#: methods whose arguments changed
_CHANGED = {
    "enable_table_share_and_persistence": Renamed(
        "connection.ha.share(…, options=StreamTableOptions(…))", _enable_sharing
    ),
    "get_stream_table_changelog": Renamed("connection.ha.table(…).changelog", _changelog),
    "ha_stream_table": Renamed(
        "connection.ha.create(…, options=StreamTableOptions(…))", _ha_stream_table
    ),
    "subscribe_table": Renamed(
        "connection.ha.subscribe(…, options=SubscriptionOptions(…))", _subscribe_table
    ),
    "unsubscribe_table": Renamed("connection.ha.unsubscribe", _unsubscribe_table),
}
#: DolphinDB's names, which are functions of `penstock.compat.dolphindb` now
_DOLPHINDB = {
    "dropDatabase": "drop_database",
    "dropStreamTable": "drop_stream_table",
    "enableTableShareAndPersistence": "enable_table_share_and_persistence",
    "existsDatabase": "exists_database",
    "getPersistenceMeta": "get_persistence_meta",
    "getStreamTableChangelog": "get_stream_table_changelog",
    "getStreamingLeader": "get_streaming_leader",
    "getStreamingRaftGroups": "get_streaming_raft_groups",
    "getStreamingStat": "get_streaming_stat",
    "getTopicProcessedOffset": "get_topic_processed_offset",
    "haStreamTable": "ha_stream_table",
    "subscribeTable": "subscribe_table",
    "unsubscribeTable": "unsubscribe_table",
}


def _on_ha(method: str) -> Renamed:
    def call(connection: Connection, *positional: Any, **keywords: Any) -> Any:
        return getattr(connection.ha, method)(*positional, **keywords)

    return Renamed(f"connection.ha.{method}", call)


def _as_in_dolphindb(name: str, function: Call) -> Renamed:
    """Return *function* as one that takes its keywords in camel case."""

    def call(connection: Connection, *positional: Any, **keywords: Any) -> Any:
        snake = {_snake_case(word): value for word, value in keywords.items()}
        return function(connection, *positional, **snake)

    return Renamed(f"penstock.compat.dolphindb.{name}", call)


def _snake_case(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name)


_SNAKE_CASE = {old: _on_ha(method) for old, method in _ON_HA.items()} | _CHANGED
_FUNCTIONS: dict[str, Call] = {
    **{name: _SNAKE_CASE[snake].call for name, snake in _DOLPHINDB.items()},
    # DolphinDB's function gives the topic, not the subscription
    "subscribeTable": _subscribe_for_topic,
}

#: of a connection
ON_CONNECTION: Mapping[str, Renamed] = _SNAKE_CASE | {
    name: _as_in_dolphindb(name, function) for name, function in _FUNCTIONS.items()
}
#: of a `Database`
ON_DATABASE: Mapping[str, Renamed] = {
    "createPartitionedTable": Renamed(
        "create_partitioned_table",
        lambda database, *given, **more: database.create_partitioned_table(*given, **more),
    )
}
