"""Control records in the log, as far as the store has to do with them: deletes, tags, barriers, and
the end of a partition.
"""

from __future__ import annotations

import json
from functools import partial

import redis

from penstock import names
from penstock.bus import Batch
from penstock.catalog.model import Table
from penstock.catalog.reader import CatalogReader
from penstock.coordination import redis_link
from penstock.errors import PenstockError
from penstock.records import DROPPED, ControlRecord, decode
from penstock.repartition import progress
from penstock.storage.segments import RangeDelete
from services.store.dead_letters import READER, DeadLetters
from services.store.latest import LatestRows
from services.store.live_rows import live_rows
from services.store.partitions import Partitions
from services.store.redis_reports import Report
from services.store.tail import Tail


class ControlHandler:
    """Used by the thread that reads the log."""

    def __init__(
        self,
        catalog: CatalogReader,
        partitions: Partitions,
        client: redis.Redis,
        latest: LatestRows,
        dead: DeadLetters,
    ) -> None:
        self._catalog = catalog
        self._partitions = partitions
        self._redis = client
        self._latest = latest
        self._dead = dead

    def apply(
        self, batch: Batch, index: int, tail: Tail, deletes: list[RangeDelete]
    ) -> list[Report]:
        """Apply one control to the tail of its partition.

        Args:
            deletes: takes the delete that it may be.

        Returns:
            What Redis has to be told once the tail has the records before it.
        """
        try:
            control = decode(ControlRecord, batch.values[index])
        except PenstockError as error:
            self._dead.bury(batch, index, error.code, str(error))
            return []
        offset = int(batch.offsets[index])
        reports = self._apply_move(control, batch, offset, tail)
        if not _counts(control, tail):
            return reports
        if control.kind == "delete" and control.table is not None:
            deletes.append(
                RangeDelete(control.table, offset, control.tables, control.low, control.high)
            )
            reports.append(partial(self._refresh_latest, control))
        elif control.kind == "tag" and control.table is not None:
            for child in control.tables or ():
                tail.set_tags(control.table, child, json.loads(control.body))
        if _wants_echo(control):
            reports.append(partial(self._echo, control.id, batch, offset))
        return reports

    def _apply_move(
        self, control: ControlRecord, batch: Batch, offset: int, tail: Tail
    ) -> list[Report]:
        """Close or end the partition, if the control says so of this database."""
        # what an earlier database of this name has left there is not about this one
        if control.id != names.move(tail.owner, names.generation(batch.topic) + 1):
            return []
        if control.kind == "close":
            tail.close()
        elif control.kind == "end":
            return [partial(self._say_ended, control.id, batch, tail.end(offset))]
        return []

    def _echo(self, barrier: str, batch: Batch, offset: int) -> None:
        key = names.barrier(barrier)
        self._redis.hset(key, f"{READER}:{batch.topic}:{batch.partition}", offset)
        self._redis.expire(key, 3600)

    def _say_ended(self, key: str, batch: Batch, offset: int) -> None:
        progress.say(self._redis, key, f"{READER}:{batch.partition}", offset)

    def _refresh_latest(self, control: ControlRecord) -> None:
        """Make LAST_ROW after a delete the latest of what is left."""
        table = self._catalog.catalog.table_by_id(control.table or 0)
        if table is None:
            return
        left = live_rows(self._partitions, table, control.tables)
        named = control.tables
        children = self._tables_with_rows(table) if named is None else list(named)
        self._latest.replace(table, children, left, dropped=control.body == DROPPED)

    def _tables_with_rows(self, table: Table) -> list[str]:
        """Return the child tables of which Redis has a latest row."""
        rows = redis_link.hash_items(self._redis, names.last_row(table.database, table.name))
        return [k if isinstance(k, str) else k.decode() for k in {k for k, _ in rows}]


def _counts(control: ControlRecord, tail: Tail) -> bool:
    """Tell if the control is still of use: not after the end, and of a producer only once."""
    if tail.ended and control.kind != "barrier":
        return False
    return control.producer is None or not tail.seen(
        control.producer, control.offset, control.ordinal
    )


def _wants_echo(control: ControlRecord) -> bool:
    """Tell if somebody waits until the store has come to this control."""
    if control.kind == "delete":
        return control.table is not None and bool(control.id)
    return control.kind == "barrier"
