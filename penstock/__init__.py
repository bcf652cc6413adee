"""Penstock: windowed stream computing in SQL over Kafka.

The public Python client is here: `penstock.connect(url, user=…, password=…)`. It is loaded on first
use, so that the rooms, which share this package, do not pay for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.client.connection import Connection, connect
    from penstock.client.handler_calls import Message
    from penstock.client.result import Result
    from penstock.client.stream_definitions import (
        StreamDefinition,
        changelog_stream_table,
        changelogStreamTable,
        keyed_stream_table,
        keyedStreamTable,
        latest_keyed_stream_table,
        latestKeyedStreamTable,
        stream_table,
        streamTable,
    )
    from penstock.client.subscribe import Subscription, Update
    from penstock.client.table_handles import StreamTable, TableDefinition, table
    from penstock.client.table_subscription import TableSubscription
    from penstock.client.writer import Writer
    from penstock.errors import PenstockError

__all__ = [
    "Connection",
    "Message",
    "PenstockError",
    "Result",
    "StreamDefinition",
    "StreamTable",
    "Subscription",
    "TableDefinition",
    "TableSubscription",
    "Update",
    "Writer",
    "changelogStreamTable",
    "changelog_stream_table",
    "connect",
    "keyedStreamTable",
    "keyed_stream_table",
    "latestKeyedStreamTable",
    "latest_keyed_stream_table",
    "streamTable",
    "stream_table",
    "table",
]

_HOME = {
    "Connection": "penstock.client.connection",
    "Message": "penstock.client.handler_calls",
    "StreamTable": "penstock.client.table_handles",
    "TableDefinition": "penstock.client.table_handles",
    "TableSubscription": "penstock.client.table_subscription",
    "table": "penstock.client.table_handles",
    "PenstockError": "penstock.errors",
    "Result": "penstock.client.result",
    "Subscription": "penstock.client.subscribe",
    "Update": "penstock.client.subscribe",
    "Writer": "penstock.client.writer",
    "connect": "penstock.client.connection",
    **dict.fromkeys(
        (
            "StreamDefinition",
            "changelogStreamTable",
            "changelog_stream_table",
            "keyedStreamTable",
            "keyed_stream_table",
            "latestKeyedStreamTable",
            "latest_keyed_stream_table",
            "streamTable",
            "stream_table",
        ),
        "penstock.client.stream_definitions",
    ),
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
