"""Records of the log as rows for the tail: decoded by their schema, and without those that do not
count.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from penstock.bus import Batch
from penstock.catalog.model import Table
from penstock.catalog.reader import CatalogReader
from penstock.catalog.stored import written
from penstock.codec import Decoded, TableCodec
from penstock.rows.partition import partition_of
from penstock.sql.plan import TICKS_PER_SECOND
from services.store.dead_letters import DeadLetters
from services.store.tail import Tail

Ids = npt.NDArray[np.int64]


class RecordDecoder:
    """Used by the thread that reads the log."""

    def __init__(self, catalog: CatalogReader, dead: DeadLetters) -> None:
        self._catalog = catalog
        self._dead = dead
        self._codecs: dict[int, TableCodec] = {}

    def stretch(
        self, batch: Batch, tail: Tail, ids: Ids, low: int, high: int
    ) -> Iterator[tuple[Table, pl.DataFrame]]:
        """Yield the rows of each table in the records low..high, none of which is a control; in log
        order.
        """
        found: dict[int, tuple[Table, list[pl.DataFrame]]] = {}
        for schema_id in dict.fromkeys(ids[low:high].tolist()):
            places = np.flatnonzero(ids[low:high] == schema_id) + low
            codec = self._codec(schema_id)
            if codec is not None:
                rows = self._rows(batch, tail, codec, places)
                if rows.height:
                    found.setdefault(codec.table.id, (codec.table, []))[1].append(rows)
            elif not self._catalog.catalog.was_dropped(schema_id):
                reason = f"no table has schema id {schema_id}"
                for i in places.tolist():
                    self._dead.bury(batch, i, "E_UNKNOWN_SCHEMA", reason)
        for table, parts in found.values():
            # of two versions of a table each was decoded apart
            if len(parts) == 1:
                yield table, parts[0]
            else:
                rows = pl.concat(parts, how="diagonal_relaxed").sort("_offset", "_row")
                yield table, rows

    def _rows(self, batch: Batch, tail: Tail, codec: TableCodec, places: Ids) -> pl.DataFrame:
        values = batch.values
        if len(places) < len(batch):
            values = [values[i] for i in places.tolist()]
        decoded = codec.decode(values)
        for index, reason in decoded.bad:
            self._dead.bury(batch, int(places[index]), "E_MALFORMED", reason)
        rows = decoded.rows
        unwanted = self._repeats(tail, decoded)
        if tail.over:
            unwanted += self._late(batch, tail, places, decoded)
        if unwanted:
            rows = rows.filter(~pl.col("_record").is_in(unwanted))
        rows = _in_place(codec.table, batch.partition, rows)
        rows = self._near(codec.table, rows, batch.timestamps[places], decoded)
        record = rows["_record"].to_numpy()
        starts = np.flatnonzero(np.diff(record, prepend=-1))
        place = np.arange(len(record)) - np.repeat(starts, np.diff([*starts, len(record)]))
        if renamed := written(codec.table.stored_names):
            rows = rows.rename(renamed)
        return rows.drop("_record", "_write").with_columns(
            _offset=pl.Series(batch.offsets[places][record]),
            _row=pl.Series(place.astype(np.uint32)),
        )

    def _near(self, table: Table, rows: pl.DataFrame, came: Ids, decoded: Decoded) -> pl.DataFrame:
        """Leave out rows further ahead of their arrival than MAX_AHEAD: the scan makes dead letters
        of them.

        Results of streams have the times of their windows.
        """
        database = self._catalog.catalog.database(table.database)
        if database is None or not rows.height:
            return rows
        ahead = database.max_ahead.ticks(table.precision)
        per_ms = TICKS_PER_SECOND[table.precision] // 1000
        times = rows[table.time_column].to_numpy()
        far = times > came[rows["_record"].to_numpy()] * per_ms + ahead
        if not far.any():
            return rows
        results = {record for record, *_ in decoded.stamps}
        mine = rows["_record"].is_in(list(results)).to_numpy()
        return rows.filter(pl.Series(~far | mine))

    def _repeats(self, tail: Tail, decoded: Decoded) -> list[int]:
        """Find records of producers (streams) that were had already: a restarted operator may
        publish them again.
        """
        return [
            r
            for r, producer, offset, ordinal in decoded.stamps
            if tail.seen(producer, offset, ordinal)
        ]

    def _late(self, batch: Batch, tail: Tail, places: Ids, decoded: Decoded) -> list[int]:
        """Find records that came when the partition was closed: streams may still bring their
        results until it has ended, nobody else.
        """
        results = set() if tail.ended else {r for r, *_ in decoded.stamps}
        late = [r for r in range(len(places)) if r not in results]
        now = self._topic_now(batch.topic) if late else ""
        for r in late:
            self._dead.bury(
                batch,
                int(places[r]),
                "E_MOVED",
                f"the partitions of the database have changed: publish to {now}",
            )
        return late

    def _topic_now(self, topic: str) -> str:
        """Return the topic to publish to instead of one that has ended."""
        home = self._catalog.catalog.database_of_topic(topic)
        if home is None:
            return ""
        return home.topic if home.move is None else home.next_topic

    def _codec(self, schema_id: int) -> TableCodec | None:
        found = self._catalog.catalog.schema(schema_id)
        if found is None:
            return None
        codec = self._codecs.get(schema_id)
        if codec is None or codec.table != found[0]:
            codec = self._codecs[schema_id] = TableCodec(found[0], schema_id)
        return codec


def _in_place(table: Table, partition: int, rows: pl.DataFrame) -> pl.DataFrame:
    """Keep rows whose tables belong to this partition; of the others the scan makes dead
    letters.
    """
    if table.partitions == 1:
        return rows
    found = rows["tbname"].unique()
    wrong = found.filter(partition_of(found, table.partitions) != partition)
    return rows.filter(~pl.col("tbname").is_in(wrong.implode())) if len(wrong) else rows
