"""Records of the catalog's log, applied to a `Catalog`: which are taken, and what they change.

Skips records that cannot be read, records whose key names another entry than their content, and
records of a writer that does not hold the catalog's lease. Each is logged and counted, and the
entry that was known before stays. Does not read the log.
"""

from __future__ import annotations

from dataclasses import dataclass

import structlog
from prometheus_client import Counter
from prometheus_client.registry import CollectorRegistry

from penstock.bus import Batch
from penstock.catalog import entries
from penstock.catalog.built import BuiltEntries
from penstock.catalog.model import Entry
from penstock.catalog.view import Catalog
from penstock.errors import SchemaError

_log = structlog.get_logger("penstock.catalog")


@dataclass(frozen=True)
class Changed:
    """One applied change: `new` None means dropped, `old` None means created."""

    old: Entry | None
    new: Entry | None


class LogApplier:
    """Applies records in the log's order."""

    def __init__(
        self,
        catalog: Catalog,
        *,
        children: bool,
        registry: CollectorRegistry | None,
        built: BuiltEntries | None = None,
    ) -> None:
        """
        Args:
            catalog: what the records are applied to.
            children: apply those of child tables too.
            registry: metrics of the service; the refused records are counted there.
            built: entries that need not be built again.
        """
        self._catalog = catalog
        self._built = BuiltEntries() if built is None else built
        self._children = children
        #: the log was read to its end once: what comes from now on comes from a live writer
        self.live = False
        #: epoch of the newest leader record
        self._led = 0
        #: keys whose newest record was refused: the leader writes what they should hold, else
        #: compaction would lose it
        self.spoiled: set[bytes] = set()
        self._refused = Counter(
            "penstock_catalog_refused_records",
            "Records of the catalog's log that were skipped: forged, of a writer without the lease,"
            " or unreadable",
            registry=registry or CollectorRegistry(),
        )

    def apply(self, batch: Batch) -> list[Changed]:
        """Apply the records of *batch* and return what they changed."""
        changes = []
        for offset, key, value in zip(
            batch.offsets.tolist(), batch.keys, batch.values, strict=True
        ):
            try:
                change = self._apply_one(key or b"", value)
                self.spoiled.discard(key or b"")
            except SchemaError as error:
                _log.warning("a catalog record is refused", offset=offset, error=str(error))
                self._refused.inc()
                self.spoiled.add(key or b"")
                change = None
            if change is not None:
                changes.append(change)
            self._catalog.revision = offset + 1
        return changes

    def _apply_one(self, key: bytes, value: bytes | None) -> Changed | None:
        catalog = self._catalog
        if value is None:
            return self._remove(key)
        if key.startswith(b"child/") and not self._children:
            return None
        record = entries.read(value)
        if key != f"{record.kind}/{record.id}".encode():
            raise SchemaError(f"the key {_key_text(key)} holds {record.kind}/{record.id}")
        self._check_writer(record.epoch, leads=key == entries.LEADER_KEY)
        if key == entries.LEADER_KEY:
            catalog.next_id = max(catalog.next_id, _next_id(record.body))
            return None
        entry = self._built.entry_of(record)
        if entry is None:
            return None
        known = catalog.by_id(record.id)
        if (entries.key_of(entry), entry.name) != (key, record.name) or (
            known is not None and entries.key_of(known) != key
        ):
            raise SchemaError(f"the record of {_key_text(key)} holds another entry")
        return Changed(catalog.put(entry), entry)

    def _remove(self, key: bytes) -> Changed | None:
        """Forget the entry that *key* names. Raises SchemaError when the entry of that id is of
        another kind.
        """
        number = entries.id_of(key)
        known = self._catalog.by_id(number) if number is not None else None
        if known is None:
            return None
        if entries.key_of(known) != key:
            raise SchemaError(
                f"the key {_key_text(key)} would remove {entries.key_of(known).decode()}"
            )
        return Changed(self._catalog.remove(known.id), None)

    def _check_writer(self, epoch: int, *, leads: bool) -> None:
        """Refuse a record that was not written under the lease.

        A writer announces its epoch with a leader record before it writes anything else. Compaction
        keeps only the newest leader record, so entries may come before theirs while the log is read
        from its beginning, but not from a writer that is live.
        """
        catalog = self._catalog
        if epoch < catalog.epoch:
            raise SchemaError(f"a leader of epoch {epoch} wrote after epoch {catalog.epoch}")
        if not leads and self.live and epoch > self._led:
            raise SchemaError(
                f"a writer of epoch {epoch} wrote that has never led; the leader's epoch is"
                f" {self._led}"
            )
        catalog.epoch = epoch
        if leads:
            self._led = epoch


def _key_text(key: bytes) -> str:
    return key[:80].decode(errors="replace")


def _next_id(body: str) -> int:
    try:
        return int(body)
    except ValueError:
        raise SchemaError("the leader's record holds no number", detail=body[:40]) from None
