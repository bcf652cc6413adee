"""The content of a followed table: description and rows as of the last message, and the token that
says how far that is. Knows no connection; not thread-safe: its user holds a lock.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import RemoteError
from penstock.link.channel import LinkMessage
from penstock.link.description import Description
from penstock.link.remote_request import RemoteRequest
from penstock.link.row_buffer import RowBuffer, schema_of, to_arrow
from penstock.rows.versions import CLEAR


class MirrorContent:
    """Rows of a followed table, or with `blink` those of the last cycle of its source."""

    def __init__(self, request: RemoteRequest, shown: str) -> None:
        """`shown` is what errors call the table."""
        self._request = request
        self._shown = shown
        self._blink = request.options.blink
        self._description = request.definition
        self._rows = RowBuffer()
        self._cycle: pa.Table | None = None
        self._table_id = 0
        #: place in the log that the rows go up to
        self.token = ""

    @property
    def description(self) -> Description:
        """Raises RemoteError while nobody knows it."""
        if self._description is None:
            raise RemoteError(
                f"nobody knows yet what {self._shown} looks like",
                hint="give the builder a table_definition",
            )
        return self._description

    @property
    def columns(self) -> list[str]:
        return [c.name for c in self._request.visible_columns(self.description)]

    @property
    def schema(self) -> pa.Schema:
        """Raises RemoteError while nobody knows it."""
        description = self.description
        return schema_of(self._request.visible_columns(description), description.precision)

    @property
    def has_cycle(self) -> bool:
        """True while a blink table shows rows."""
        return self._cycle is not None and self._cycle.num_rows > 0

    def frame(self) -> pl.DataFrame | None:
        """Return the rows that count; None when there never were any."""
        return self._rows.frame(self.description)

    def newest(self, most: int) -> tuple[int, pa.Table]:
        """Return the number of rows, and those with the newest times, in their order. Raises
        RemoteError while nobody knows it.
        """
        if self._blink:
            cycle = self.cycle()
            return cycle.num_rows, cycle.slice(max(cycle.num_rows - most, 0))
        frame = self.frame()
        if frame is None:
            return 0, self.schema.empty_table()
        order = [self.description.time_column, "_offset", "_row"]
        last = frame.top_k(most, by=order).sort(order)
        return frame.height, self.to_arrow(last, self.description)

    def cycle(self) -> pa.Table:
        """Return the rows of the last cycle."""
        return self.schema.empty_table() if self._cycle is None else self._cycle

    def to_arrow(self, frame: pl.DataFrame | None, description: Description) -> pa.Table:
        """Return rows of `frame` as people get them."""
        if frame is None:
            return self.schema.empty_table()
        return to_arrow(frame, self._request.visible_columns(description), description.precision)

    def describe(self, description: Description) -> bool:
        """Take the description of a table that is being opened. Tell whether it is the table whose
        rows are here, so that following it can go on behind the token.
        """
        same = self._table_id == description.id and bool(self.token)
        self._description = description
        self._table_id = description.id
        return same

    def reset(self, frames: Sequence[pl.DataFrame], token: str) -> None:
        """Begin anew with the rows of *frames*."""
        self._rows = RowBuffer(frames)
        self._cycle = None
        self.token = token

    def change_schema(self, message: LinkMessage) -> None:
        self._rows.settle(self.description)
        self._description = Description.from_json(message.header["table"])

    def apply(self, message: LinkMessage) -> None:
        """Add, delete or retag rows, as *message* says; a blink table keeps none."""
        if self._blink:
            return
        description = self.description
        header = message.header
        if message.rows is not None:
            self._rows.add(message.rows, description, self._request.columns(description))
        elif message.kind == "delete":
            low = int(header["low"])
            high = int(header["high"])
            self._rows.delete(header.get("tables"), low, high, description)
        elif message.kind == "tags":
            tags = json.loads(header.get("tags") or "{}")
            self._rows.retag(header.get("tables") or [], tags, description)

    def begin_cycle(self, rows: pa.Table | None) -> None:
        """Show *rows*, and no others any more."""
        self._cycle = rows

    def cycles(self, message: LinkMessage) -> Iterator[pa.Table]:
        """Split rows of a blink table: each batch of the source is a cycle of its own."""
        rows = message.rows
        assert rows is not None
        start = 0
        for count in message.header.get("cycles") or [rows.num_rows]:
            yield self.visible(rows.slice(start, count))
            start += count

    def visible(self, rows: pa.Table) -> pa.Table:
        """Return *rows* as updates show them."""
        names = [c for c in ("_op", "tbname") if c in rows.column_names]
        names += [c for c in self.columns if c in rows.column_names]
        shown = rows.select(names)
        if "_op" not in names:
            return shown
        return shown.filter(pc.not_equal(shown.column("_op"), CLEAR))
