"""What one subscriber over the link has had and gets next: pure decisions, no sockets and no Kafka.

Every message continues exactly behind the one before it: what was had (by offset) and what a
restarted producer published twice (by its positions) is dropped. A DELETE of a range and new tags
of a child table come as messages of their own, at their place among the rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from penstock.catalog.model import Table
from penstock.catalog.stored import present
from penstock.feeds.cursor import Cursor, TokenError
from penstock.feeds.slices import Slice
from penstock.records import ControlRecord
from penstock.sql.plan import Column
from services.federation.followed_select import FollowedSelect
from services.federation.records import FoundRecords, records_of

#: rows of one message
FRAME_ROWS = 50_000


@dataclass(frozen=True)
class Out:
    """One message to the subscriber."""

    header: dict[str, Any]
    rows: pa.Table | None = None


def to_wire(frame: pl.DataFrame, columns: tuple[Column, ...], precision: str) -> pa.Table:
    """Ticks become timestamps, and every column has its table's type."""
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    arrays = []
    for column in columns:
        array = table.column(column.name)
        kind = column.type.arrow(precision)
        arrays.append(array if array.type == kind else array.cast(kind))
    return pa.table(
        arrays, schema=pa.schema([(c.name, a.type) for c, a in zip(columns, arrays, strict=True)])
    )


class LinkSubscription:
    """Rows of one table that pass a SELECT. `cursor` is where it stands."""

    def __init__(
        self, cursor: Cursor, table_id: int, select: FollowedSelect, *, cycles: bool
    ) -> None:
        """*cycles*: a batch of rows is one update cycle."""
        self.cursor = cursor
        self._id = table_id
        self.select = select
        self._cycles = cycles

    def token(self) -> str:
        return f"{self._id}.{self.cursor.token()}"

    def schema_message(self) -> Out:
        return Out(
            {
                "type": "schema",
                "table": self.select.source.to_json(),
                "columns": [c.name for c in self.select.selection.outputs],
            }
        )

    def take(self, piece: Slice) -> list[Out]:
        """Messages for a slice; moves the cursor."""
        out = [self.schema_message()] if self.select.refresh() else []
        start = self.cursor.offsets.get(piece.partition, piece.first)
        self.cursor.offsets[piece.partition] = max(piece.next, start)
        table = self.select.table()
        found = records_of(piece, table)
        offsets = piece.batch.offsets
        first = int(np.searchsorted(offsets, start))
        rows = self._fresh_rows(piece, found, first)
        low = 0
        for at, control in found.controls:
            if at < first:
                continue
            out += self._messages(_between(rows, low, at))
            low = at
            if control.producer is None or not self.cursor.check_seen(
                piece.partition, control.producer, control.offset, control.ordinal
            ):
                out.append(_control_message(control, int(offsets[at]), table))
        out += self._messages(_between(rows, low, None))
        return self._stamp(piece.partition, out)

    def _fresh_rows(self, piece: Slice, found: FoundRecords, first: int) -> pl.DataFrame:
        """Return the rows from record *first* on that the subscriber has not had."""
        had = [
            record
            for record, producer, offset, ordinal in found.stamps
            if record >= first
            and self.cursor.check_seen(piece.partition, producer, offset, ordinal)
        ]
        if found.rows.height and (had or first):
            return found.rows.filter((pl.col("_at") >= first) & ~pl.col("_at").is_in(had))
        return found.rows

    def _stamp(self, partition: int, messages: list[Out]) -> list[Out]:
        """Say of messages where they are from; the last one has the token behind all of them."""
        for one in messages:
            one.header["partition"] = partition
        if messages:
            messages[-1].header["token"] = self.token()
        return messages

    def take_stored(self, partition: int, rows: pl.DataFrame, following: int) -> list[Out]:
        """Messages for rows that come from segments instead of the log; the next record is at
        *following*.
        """
        self.cursor.offsets[partition] = following
        if not rows.height:
            return []
        rows = rows.with_columns(
            _at=pl.col("_offset").rle_id(),
            _part=pl.lit(partition, pl.Int32),
            _appended=pl.col("_time"),
        )
        return self._stamp(partition, list(self._messages(rows)))

    def _messages(self, rows: pl.DataFrame) -> Iterator[Out]:
        child = self.select.child
        if child is not None and rows.height:
            rows = rows.filter(pl.col("tbname").str.to_lowercase() == child.lower())
        if not rows.height:
            return
        selection = self.select.selection
        passed = selection.apply(rows.with_row_index("_place"))
        if self._cycles and passed.height:
            # a batch is one cycle, whatever of it passes
            batch = selection.apply(rows.with_columns(_row=pl.col("_at").cast(pl.UInt32)))["_row"]
            lengths = batch.rle().struct.field("len").to_list()
            yield Out({"type": "rows", "cycles": lengths}, self._to_wire(passed))
            return
        for piece in pieces(passed):
            yield Out({"type": "rows"}, self._to_wire(piece))

    def _to_wire(self, rows: pl.DataFrame) -> pa.Table:
        return to_wire(rows, self.select.columns, self.select.source.precision)


def _between(rows: pl.DataFrame, low: int, high: int | None) -> pl.DataFrame:
    """Return the rows of records low..high, *high* excluded."""
    if not rows.height:
        return rows
    if high is not None:
        return rows.filter(pl.col("_at").is_between(low, high, closed="left"))
    return rows.filter(pl.col("_at") >= low) if low else rows


def _control_message(control: ControlRecord, offset: int, table: Table) -> Out:
    """Return the message of a DELETE of a range, or of new tags."""
    tables = list(control.tables) if control.tables is not None else None
    if control.kind == "delete":
        return Out(
            {
                "type": "delete",
                "tables": tables,
                "low": control.low,
                "high": control.high,
                "offset": offset,
            }
        )
    tags = json.dumps(present(table.stored_names, json.loads(control.body)))
    return Out({"type": "tags", "tables": tables, "tags": tags})


def pieces(rows: pl.DataFrame, most: int = FRAME_ROWS) -> Iterator[pl.DataFrame]:
    """At most *most* rows each, and no record in two of them: whoever applies a message whole shows
    no half of a write. (A record with more rows than that has to be cut.)
    """
    start = 0
    while rows.height - start > most:
        whole = int(rows["_offset"].search_sorted(rows["_offset"][start + most], "left"))
        end = whole if whole > start else start + most
        yield rows[start:end]
        start = end
    yield rows[start:]


def begin(start: str, table_id: int, ends: dict[int, int], beginnings: dict[int, int]) -> Cursor:
    """Where a subscription begins: `latest`, `earliest` (the first row ever written) or a token.

    Raises:
        TokenError: the token is none, or of a table that was dropped and made again.
    """
    if start == "latest":
        return Cursor(dict(ends))
    if start == "earliest":
        return Cursor(dict.fromkeys(beginnings, 0))
    owner, _, text = start.partition(".")
    cursor = Cursor.from_token(text)
    if owner != str(table_id):
        raise TokenError(
            "the token is of another table",
            detail="a table that was dropped and made again is another table",
        )
    return cursor
