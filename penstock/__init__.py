"""Penstock: windowed stream computing in SQL over Kafka.

The public Python client is here: `penstock.connect(url, user=…, password=…)`. It is loaded on first
use, so that the services, which share this package, do not pay for it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.client.connection import Connection, connect
    from penstock.client.connection_options import ConnectionOptions
    from penstock.client.handler_calls import Message
    from penstock.client.result import Result
    from penstock.client.stream_definitions import (
        StreamDefinition,
        changelog_stream_table,
        keyed_stream_table,
        latest_keyed_stream_table,
        stream_table,
    )
    from penstock.client.stream_table_options import StreamTableOptions
    from penstock.client.stream_tables import StreamTables
    from penstock.client.subscribe import Subscription, Update
    from penstock.client.subscription_options import SubscriptionOptions
    from penstock.client.table_handles import StreamTable, TableDefinition, table
    from penstock.client.table_subscription import TableSubscription
    from penstock.client.writer import Writer
    from penstock.errors import PenstockError

__all__ = [
    "Connection",
    "ConnectionOptions",
    "Message",
    "PenstockError",
    "Result",
    "StreamDefinition",
    "StreamTable",
    "StreamTableOptions",
    "StreamTables",
    "Subscription",
    "SubscriptionOptions",
    "TableDefinition",
    "TableSubscription",
    "Update",
    "Writer",
    "changelog_stream_table",
    "connect",
    "keyed_stream_table",
    "latest_keyed_stream_table",
    "stream_table",
    "table",
]

_HOME = {
    "Connection": "penstock.client.connection",
    "ConnectionOptions": "penstock.client.connection_options",
    "Message": "penstock.client.handler_calls",
    "PenstockError": "penstock.errors",
    "Result": "penstock.client.result",
    "StreamDefinition": "penstock.client.stream_definitions",
    "StreamTable": "penstock.client.table_handles",
    "StreamTableOptions": "penstock.client.stream_table_options",
    "StreamTables": "penstock.client.stream_tables",
    "Subscription": "penstock.client.subscribe",
    "SubscriptionOptions": "penstock.client.subscription_options",
    "TableDefinition": "penstock.client.table_handles",
    "TableSubscription": "penstock.client.table_subscription",
    "Update": "penstock.client.subscribe",
    "Writer": "penstock.client.writer",
    "changelog_stream_table": "penstock.client.stream_definitions",
    "connect": "penstock.client.connection",
    "keyed_stream_table": "penstock.client.stream_definitions",
    "latest_keyed_stream_table": "penstock.client.stream_definitions",
    "stream_table": "penstock.client.stream_definitions",
    "table": "penstock.client.table_handles",
}

#: modules of live tables, which `penstock[remote-tables]` brings what they need for
_REMOTE_TABLES = ("remote_table", "uri")

#: names of earlier versions that still work, with a DeprecationWarning; those of a connection are
#: in `penstock.client.old_names`
_OLD = {
    "changelogStreamTable": "changelog_stream_table",
    "keyedStreamTable": "keyed_stream_table",
    "latestKeyedStreamTable": "latest_keyed_stream_table",
    "streamTable": "stream_table",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _REMOTE_TABLES:
            from penstock import installed

            installed.require(installed.REMOTE_TABLES, "remote-tables")
            return import_module(f"penstock.{name}")
        new = _OLD.get(name, name)
        if new not in _HOME:
            raise AttributeError(f"module 'penstock' has no attribute {name!r}")
        if new != name:
            from penstock.client.old_names import warn

            warn(f"penstock.{name}", f"penstock.{new}")
        return getattr(import_module(_HOME[new]), new)


def __dir__() -> list[str]:
    return sorted(__all__)
