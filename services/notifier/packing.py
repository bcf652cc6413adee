"""Records of events packed into messages, for streams whose makers may have their targets
notified.
"""

from __future__ import annotations

import asyncio
import contextlib

from penstock.catalog.model import StreamEntry
from penstock.catalog.reader import CatalogReader
from penstock.errors import BusError, SchemaError
from penstock.feeds.slices import Slice
from penstock.outbound.reach import Outbound
from penstock.outbound.targets import NOTIFY_HINT
from penstock.records import EventsRecord, decode
from penstock.runtime.clock import Clock, milliseconds
from penstock.runtime.log import get
from services.notifier.message import NotifyMessage, NotifyTarget, pack, targets_of

_CATALOG_PATIENCE = 10.0
log = get(__name__)


class Packer:
    """Event loop only."""

    def __init__(self, catalog: CatalogReader, outbound: Outbound, clock: Clock) -> None:
        """*outbound*: which hosts the maker of a stream may have notified."""
        self._catalog = catalog
        self._outbound = outbound
        self._clock = clock
        #: streams whose maker may not notify anybody (any more)
        self._silent: set[int] = set()

    async def find_stream(self, value: bytes | None) -> StreamEntry | None:
        """Find the stream of a record, unless it was dropped. The catalog may be a moment behind a
        stream's first events.
        """
        try:
            stream_id = decode(EventsRecord, value).stream
        except SchemaError:
            return None
        if self._catalog.catalog.next_id <= stream_id:
            loop = asyncio.get_running_loop()
            with contextlib.suppress(BusError):
                await loop.run_in_executor(
                    None, self._catalog.wait_for, lambda c: c.next_id > stream_id, _CATALOG_PATIENCE
                )
        return self._catalog.catalog.stream_by_id(stream_id)

    def pack(
        self, partition: int, offset: int, value: bytes | None, entry: StreamEntry | None
    ) -> NotifyMessage | None:
        """Pack a record into the message that its targets get, if there are any.

        Raises:
            SchemaError: it is no record of events; so ValueError, TypeError and AttributeError.
        """
        if entry is None or not self._may_notify(entry):
            return None
        record = decode(EventsRecord, value)
        return pack(entry, record, partition, offset, milliseconds(self._clock))

    def pack_slice(self, piece: Slice) -> list[NotifyMessage]:
        """Pack records that a delivery has read from the log."""
        found = []
        for offset, value in zip(piece.batch.offsets.tolist(), piece.batch.values, strict=True):
            try:
                entry = self._catalog.catalog.stream_by_id(decode(EventsRecord, value).stream)
                message = self.pack(piece.partition, offset, value, entry)
            except (SchemaError, ValueError, TypeError, AttributeError):
                continue  # told by the live reader
            if message is not None:
                found.append(message)
        return found

    def _may_notify(self, entry: StreamEntry) -> bool:
        """Tell if the stream's maker may have anybody notified; several makers may share the
        connection to a target.
        """
        if not targets_of(entry) or not self._outbound.reach(entry.maker).nowhere:
            self._silent.discard(entry.id)
            return True
        if entry.id not in self._silent:
            self._silent.add(entry.id)
            log.warning(
                "a stream's targets are not notified",
                stream=f"{entry.database}.{entry.name}",
                maker=entry.maker,
                hint=NOTIFY_HINT,
            )
        return False

    def may_go_anywhere(self, stream_id: int) -> bool:
        """Tell if a stream's maker may have any host notified."""
        entry = self._catalog.catalog.stream_by_id(stream_id)
        return entry is not None and self._outbound.anywhere(entry.maker)

    def may_be_any_host(self, target: NotifyTarget) -> bool:
        """Tell if a user who may have any host notified has a stream with *target*."""
        return any(
            target in targets_of(s) and self._outbound.anywhere(s.maker)
            for s in self._catalog.catalog.streams()
        )
