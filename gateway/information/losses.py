"""Lists of rows that could not be used: those that came late, and dead letters."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from gateway.answers import table_of
from gateway.information import columns
from gateway.information.remedies import advice, kind_of
from gateway.information.viewer import Viewer
from penstock import names
from penstock.catalog.model import External, StreamEntry, Table, View
from penstock.catalog.view import Catalog
from penstock.records import DeadLetter


class LossLists:
    """Both lists come out of the newest dead letters."""

    def __init__(self, viewer: Viewer, letters: Callable[[], list[DeadLetter]]) -> None:
        """*letters*: reads the newest dead letters."""
        self._viewer = viewer
        self._letters = letters

    def late(self) -> pa.Table:
        """Return rows that streams have dropped as late, for who may read the streams' sources."""
        catalog = self._viewer.catalog
        rows: list[tuple[Any, ...]] = []
        seen = set()
        for letter in self._letters():
            stream = self._late_for(letter, catalog)
            key = (letter.topic, letter.partition, letter.offset, letter.stream, letter.value)
            if stream is None or letter.value is None or key in seen:
                continue
            if not self._reads_source(stream):
                continue
            seen.add(key)  # what was published twice around a crash counts once
            rows += [_late_row(stream, letter, line) for line in letter.value.splitlines()]
        return table_of(columns.LATE, rows)

    @staticmethod
    def _late_for(letter: DeadLetter, catalog: Catalog) -> StreamEntry | None:
        """Return the stream that rows came late for, if the letter says so."""
        if letter.code != "E_LATE" or letter.stream is None:
            return None
        return catalog.stream_by_id(letter.stream)

    def _reads_source(self, stream: StreamEntry) -> bool:
        """Tell whether this user may read the rows that a stream reads."""
        sources = (self._viewer.whole().table_by_id(t) for t in stream.plan.source.table_ids)
        return all(self._viewer.may("READ", t) for t in sources)

    def _sender(self, letter: DeadLetter) -> StreamEntry | View | None:
        """Return the stream or view that could not use a row; None if it was a reader of all rows,
        or is gone.
        """
        entry = self._viewer.whole().by_id(letter.stream) if letter.stream is not None else None
        return entry if isinstance(entry, StreamEntry | View) else None

    def _reads(self, entry: StreamEntry | View | None, topic: str) -> bool:
        """Tell whether this user may see rows of *topic* that *entry*, or a reader of all rows,
        could not use.
        """
        if isinstance(entry, StreamEntry):
            return self._reads_source(entry)
        catalog = self._viewer.whole()
        source = catalog.by_id(entry.source_id) if entry is not None else None
        if isinstance(source, Table | External):
            return self._viewer.may("READ", source)
        # what is in no database is for who may read everything
        home = catalog.database(names.database_of(topic)) if names.is_ingest_topic(topic) else None
        return self._viewer.may("READ", home)

    def _source(
        self, entry: StreamEntry | View | None, topic: str
    ) -> tuple[str | None, str | None, str | None]:
        """Return database, name and time column of the table whose rows *entry* could not use; of a
        reader of all rows only the database is known.
        """
        if isinstance(entry, StreamEntry):
            source = entry.plan.source
            return source.database, source.table, source.time_column
        catalog = self._viewer.whole()
        table = catalog.by_id(entry.source_id) if entry is not None else None
        if isinstance(table, Table):
            return table.database, table.name, table.time_column
        home = catalog.database_of_topic(topic)
        return (home.name if home is not None else None), None, None

    def dead_letters(self) -> pa.Table:
        """Return the newest records and rows that could not be used; those of databases, streams
        and views whose rows one may read.
        """
        rows = []
        for letter in self._letters():
            entry = self._sender(letter)
            if not self._reads(entry, letter.topic):
                continue
            rows.append(
                (
                    letter.topic,
                    letter.partition,
                    letter.offset,
                    letter.reader,
                    entry.name if entry is not None else None,
                    entry.database if entry is not None else None,
                    letter.code,
                    letter.reason,
                    letter.time,
                    (letter.value or b"").decode(errors="replace"),
                    kind_of(letter),
                    *self._source(entry, letter.topic),
                    advice(letter),
                )
            )
        return table_of(columns.LETTERS, rows)


def _late_row(stream: StreamEntry, letter: DeadLetter, line: bytes) -> tuple[Any, ...]:
    row: dict[str, Any] = {}
    try:
        row = json.loads(line)
        source = stream.plan.source
        own = {column.name for column in (*source.columns, *source.tags)}
        values = {k: v for k, v in row.items() if k in own}
        shown = json.dumps(values)
    except ValueError:  # longer than a letter may be, and cut there
        row = {}
        shown = line.decode(errors="replace")
    time = row.get(stream.plan.source.time_column)
    return (stream.name, stream.database, letter.time, row.get("tbname"), time, shown)
