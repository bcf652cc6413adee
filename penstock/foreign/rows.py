"""Messages of a foreign topic as rows of the table that stands for it, each with its place in the
topic.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import polars as pl

from penstock.bus import Batch
from penstock.catalog.model import Table
from penstock.foreign.changes import Changes
from penstock.foreign.envelopes import AvroEnvelopes, Envelopes, JsonEnvelopes
from penstock.foreign.messages import Messages
from penstock.foreign.protobuf import ProtobufMessages
from penstock.foreign.registry import SchemaRegistry
from penstock.foreign.topic import MESSAGE_ID, Topic, message_id
from penstock.sql.plan import TICKS_PER_SECOND


class MessageDecoder(Protocol):
    """Decodes all given messages or none: callers halve a refused batch to find the bad one."""

    def decode(self, batch: Batch, indexes: Sequence[int]) -> pl.DataFrame:
        """Return rows of the messages of *batch* at *indexes*, with `_offset` and `_row`, and with
        `_op` where it is not always the same.

        Raises:
            SchemaError: one of them cannot be read.
            RemoteError: its schema cannot be had now.
        """


def rows_of(table: Table, topic: Topic, registry: SchemaRegistry | None) -> MessageDecoder:
    """Return the decoder that makes rows of *table* from messages of *topic*."""
    if not topic.changes:
        return MessageRows(table, topic, registry)
    envelopes: Envelopes
    if topic.format == "json":
        envelopes = JsonEnvelopes()
    else:
        assert registry is not None
        envelopes = AvroEnvelopes(registry)
    return ChangedRows(
        Changes(envelopes, table.columns, table.precision, fixed_time=topic.fixed_time)
    )


class MessageRows:
    """Each message is a row. Tombstones are none: *indexes* are those of messages with a value."""

    def __init__(self, table: Table, topic: Topic, registry: SchemaRegistry | None) -> None:
        self._time = table.time_column
        self._ticks_per_ms = TICKS_PER_SECOND[table.precision] // 1_000
        columns = [c for c in table.columns if c.name != MESSAGE_ID]
        self._messages: Messages | ProtobufMessages
        if topic.format == "protobuf":
            assert registry is not None
            self._messages = ProtobufMessages(columns, table.precision, registry)
        else:
            self._messages = Messages(topic.format, columns, table.precision, registry)

    def decode(self, batch: Batch, indexes: Sequence[int]) -> pl.DataFrame:
        chosen = np.asarray(indexes)
        frame = self._messages.decode([v for i in indexes if (v := batch.values[i]) is not None])
        offsets = batch.offsets[chosen]
        arrived = batch.timestamps[chosen]
        arrived = np.where(arrived < 0, time.time_ns() // 1_000_000, arrived) * self._ticks_per_ms
        return frame.with_columns(
            pl.col(self._time).fill_null(pl.Series(arrived)),
            pl.Series(MESSAGE_ID, message_id(batch.partition, 0) + offsets),
            pl.Series("_offset", offsets),
            _row=pl.lit(0, pl.Int64),
        )


class ChangedRows:
    """Each message says what happened to a row."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes

    def decode(self, batch: Batch, indexes: Sequence[int]) -> pl.DataFrame:
        frame = self._changes.decode([(batch.keys[i], batch.values[i]) for i in indexes])
        chosen = np.asarray(indexes)[frame["_message"].to_numpy()]
        return frame.drop("_message").with_columns(pl.Series("_offset", batch.offsets[chosen]))
