"""The shards of a view's target: what of a frame goes to which, and channels to them, one for each
producer, opened when first used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import polars as pl
import pyarrow as pa

from penstock.link.address import Address
from penstock.link.channel import Channel
from penstock.link.client import Link
from penstock.link.description import Description
from penstock.link.pool import connect_any
from penstock.rows.partition import partition as partition_number
from penstock.rows.partition import partition_of


@dataclass(frozen=True)
class TablePlace:
    """A table of some deployment: replicas of each shard, and its name there."""

    shards: tuple[tuple[Address, ...], ...]
    database: str
    name: str


@dataclass(frozen=True)
class Piece:
    """What of a frame goes to one shard: rows, or else a DELETE. `partition` is the source's."""

    shard: int
    producer: str
    partition: int
    rows: pa.Table | None = None
    delete: dict[str, Any] | None = None

    def halves(self) -> tuple[Self, Self]:
        """The rows in two, in their order."""
        assert self.rows is not None
        half = self.rows.num_rows // 2
        return replace(self, rows=self.rows.slice(0, half)), replace(
            self, rows=self.rows.slice(half)
        )


def _same_time(one: Description, other: Description) -> bool:
    """Tell if rows of both have their time in columns of one name, in the same ticks."""
    return (one.time_column.lower(), one.precision) == (
        other.time_column.lower(),
        other.precision,
    )


class Targets:
    """Of one pump and one connection."""

    def __init__(
        self, target: TablePlace, alone: bool, timeout: float, ping_seconds: float
    ) -> None:
        """*alone*: the source has one shard only."""
        self._target = target
        self._alone = alone
        self._timeout = timeout
        self._ping = ping_seconds
        self._links: dict[int, Link] = {}
        self._channels: dict[tuple[int, str], Channel] = {}
        self._described: Description | None = None

    def check(self) -> None:
        """Reach every shard now, so that a target that is away is known before there are rows."""
        for shard in range(len(self._target.shards)):
            self._link(shard)

    def _link(self, shard: int) -> Link:
        if shard not in self._links:
            self._links[shard] = connect_any(
                self._target.shards[shard], timeout=self._timeout, ping_seconds=self._ping
            )
        return self._links[shard]

    def rows(self, producer: str, partition: int, rows: pa.Table, *, stable: bool) -> list[Piece]:
        """What of *rows* goes where; *stable*: they are of child tables."""
        shards = len(self._target.shards)
        if shards == 1:
            return [Piece(0, producer, partition, rows)]
        by = (
            pl.Series(rows.column("tbname"))
            if stable
            else pl.Series(rows.column("_time").cast(pa.int64()).cast(pa.string()))
        )
        numbers = partition_of(by, shards)
        parts = [
            (shard, rows.filter(pa.array((numbers == shard).to_list()))) for shard in range(shards)
        ]
        return [Piece(shard, producer, partition, part) for shard, part in parts if part.num_rows]

    def deletion(self, producer: str, source: Description, header: dict[str, Any]) -> list[Piece]:
        """What a DELETE in one partition of the source takes from the target, and no row more;
        nothing: it cannot be said over there.

        A source partition speaks for its own child tables only: rows of others may be on their way
        already, newer than the DELETE.
        """
        shards = len(self._target.shards)
        there = self._description()
        if not self._alone or not _same_time(there, source):
            return []
        partition = int(header["partition"])
        tables = header.get("tables")
        only = None
        if tables is not None:
            tables = [t for t in tables if partition_number(t, source.partitions) == partition]
        elif there.partitions == source.partitions and shards == 1:
            only = partition
        if not tables and only is None:
            return []
        what = {
            "tables": tables,
            "partition": only,
            **{k: header[k] for k in ("low", "high", "offset")},
        }
        return [Piece(shard, producer, partition, delete=what) for shard in range(shards)]

    def _description(self) -> Description:
        """What the first shard says of the target; asked for once."""
        if self._described is None:
            self._described = self._link(0).describe(self._target.name, self._target.database)
        return self._described

    def send(self, piece: Piece) -> Channel:
        """Send it on its way; the channel on which an ack for it will come."""
        channel = self._channel(piece.shard, piece.producer)
        if piece.rows is not None:
            channel.send({"seq": 0}, piece.rows)
        else:
            channel.send({"delete": piece.delete})
        return channel

    def _channel(self, shard: int, producer: str) -> Channel:
        channel = self._channels.get((shard, producer))
        if channel is None:
            channel = self._link(shard).append(
                self._target.name, self._target.database, producer=producer
            )
            channel.expect("opened", 60.0)
            self._channels[shard, producer] = channel
        return channel

    def leave(self, pieces: Sequence[Piece]) -> None:
        """Wait for no ack of *pieces* any more: who sends on opens channels of which the other side
        knows what is there.
        """
        for key in {(piece.shard, piece.producer) for piece in pieces}:
            if (channel := self._channels.pop(key, None)) is not None:
                channel.close()

    def close(self) -> None:
        for link in self._links.values():
            link.close()
