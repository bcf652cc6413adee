"""What may go: rows older than KEEP, log records that are long in segments, files of tables that
were dropped.

Runs on the flushing thread, so it never meets a flush. Removing too late costs disk; nothing is
removed that a committed position does not cover.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from penstock import names
from penstock.bus import Admin
from penstock.catalog.model import Table
from penstock.catalog.reader import CatalogReader
from penstock.catalog.view import Catalog
from penstock.errors import PenstockError
from penstock.runtime.log import get
from penstock.sql.plan import TICKS_PER_SECOND
from penstock.storage import segments
from services.store import flush
from services.store.partitions import Partitions
from services.store.settings import StoreSettings

log = get(__name__)
_TABLE = "table="
#: no query takes longer
_LINGER_SECONDS = 3600.0


def expiry(catalog: Catalog, table: Table, now: float) -> int | None:
    """Return the time (ticks) below which rows are over their KEEP: the table's own, else its
    database's. None where rows stay for ever, as those without a time of their own do.

    Args:
        now: epoch seconds.
    """
    database = catalog.database(table.database)
    keep = table.keep or (database.keep if database else None)
    if keep is None or table.timeless:
        return None
    return int(now * TICKS_PER_SECOND[table.precision]) - keep.ticks(table.precision)


class Retention:
    def __init__(
        self, settings: StoreSettings, catalog: CatalogReader, partitions: Partitions, admin: Admin
    ) -> None:
        self._settings = settings
        self._reader = catalog
        self._partitions = partitions
        self._admin = admin

    def sweep(self) -> None:
        """One round over everything; what fails is logged and tried in the next."""
        try:
            self._remove_old()
            self._delete_old_records()
            self._remove_dropped()
        except (PenstockError, OSError) as error:
            log.warning("retention goes on in the next round", error=str(error))

    def _remove_old(self) -> None:
        """What was merged, and what is over its KEEP."""
        catalog = self._reader.catalog
        for table in catalog.tables():
            for p in range(table.partitions):
                flush.remove_merged(self._partitions.root, table.id, p, table.topic)
            before = expiry(catalog, table, time.time())
            if before is not None:
                gone = sum(
                    flush.expire(self._partitions.root, table.id, p, before, table.topic)
                    for p in range(table.partitions)
                )
                if gone:
                    log.info(
                        "segments over their KEEP removed",
                        table=f"{table.database}.{table.name}",
                        segments=gone,
                    )

    def _delete_old_records(self) -> None:
        """Delete records that have been in segments for `log_days`."""
        oldest = time.time() - self._settings.log_days * 86_400
        before = {}
        for (topic, partition), tail in self._partitions.tails().items():
            ends = self._ends_before(oldest, topic, partition, tail.view().position.next)
            if ends:
                before[topic, partition] = max(ends)
        # all that counts in topics of earlier generations is in segments of the present one
        former = [(t, p) for t, n in self._reader.catalog.former_topics().items() for p in range(n)]
        for at, offset in self._admin.offsets_at(former, int(oldest * 1000)).items():
            before[at] = offset if offset >= 0 else self._partitions.open(*at).next
        starts = self._admin.start_offsets(list(before))
        before = {key: end for key, end in before.items() if end > starts[key]}
        if before:
            self._admin.delete_records(before)

    def _ends_before(self, oldest: float, topic: str, partition: int, end: int) -> list[int]:
        """Return the ends of segments below *end* that are older than *oldest* (epoch seconds)."""
        return [
            segment.last + 1
            for table in self._reader.catalog.tables_of_topic(topic)
            for segment in segments.segments(
                segments.directory(self._partitions.root, table.id, partition, topic), end
            )
            if segment.path.stat().st_mtime < oldest
        ]

    def _remove_dropped(self) -> None:
        """Directories of tables, and positions of topics, that the catalog no longer knows."""
        catalog = self._reader.catalog
        root = Path(self._partitions.root)
        for folder in root.glob(f"{_TABLE}*"):
            number = int(folder.name.removeprefix(_TABLE))
            if number < catalog.next_id and catalog.table_by_id(number) is None:
                shutil.rmtree(folder)
        for table in catalog.tables():
            self._remove_generations(root / f"{_TABLE}{table.id}", names.generation(table.topic))
        for position in (root / "positions").glob("*.json"):
            topic, _, owner = position.stem.rpartition(".")
            if int(owner) < catalog.next_id and catalog.topic_owner(
                topic.rpartition("-")[0]
            ) != int(owner):
                position.unlink(missing_ok=True)

    @staticmethod
    def _remove_generations(folder: Path, present: int) -> None:
        """Segments of earlier generations of a topic, once no query can be reading them any
        more.
        """
        for child in folder.iterdir() if present > 1 and folder.is_dir() else ():
            number = (
                int(child.name.partition("=")[2]) if child.name.startswith("generation=") else 1
            )
            if number < present and child.stat().st_mtime < time.time() - _LINGER_SECONDS:
                shutil.rmtree(child)
