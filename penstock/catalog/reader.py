"""`CatalogReader`: a thread that follows the catalog's log and keeps one `Catalog` up to date."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable
from functools import cached_property

import structlog
from prometheus_client.registry import CollectorRegistry

from penstock import names
from penstock.bus import BEGINNING, REST_MS, Admin, Batch, Reader
from penstock.catalog.apply import Changed, LogApplier
from penstock.catalog.built import BuiltEntries
from penstock.catalog.view import Catalog
from penstock.errors import BusError
from penstock.runtime import vital

_log = structlog.get_logger("penstock.catalog")
_PARTITION = (names.CATALOG, 0)
#: how long a definition may take to arrive
_SCHEMA_PATIENCE = 5.0
#: how long the broker may hold a question until the end of the log is known, which it tells only
#: with an answer that holds no record
_END_MS = 20
#: how long one look for records lasts; `close` waits for it
_READ_SECONDS = 1.0


class CatalogReader:
    """Follows `penstock.catalog`; only what was committed is seen. `LogApplier` judges records."""

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str,
        children: bool = True,
        registry: CollectorRegistry | None = None,
        built: BuiltEntries | None = None,
    ) -> None:
        """
        Args:
            bootstrap: brokers of the mesh.
            client_id: name of the client in the broker's log.
            children: keep child tables too; a service that does not need them saves the memory of
                millions.
            registry: metrics of the service; the refused records are counted there.
            built: entries that need not be built again.
        """
        self.catalog = Catalog()
        self._bootstrap = bootstrap
        self._client_id = client_id
        self._applier = LogApplier(self.catalog, children=children, registry=registry, built=built)
        self._changed = threading.Condition()
        self._listeners: list[Callable[[list[Changed]], None]] = []
        self._caught_up = False
        #: offset up to which the log was read, with the marks of transactions, which make no
        #: revision
        self._read = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._follow, name=f"catalog-{client_id}", daemon=True
        )

    def start(self, timeout: float = 30.0) -> CatalogReader:
        """Begin to follow and return when all that was there is applied.

        Raises:
            BusError: nothing of the log came for *timeout* seconds. Who gives up while it comes,
                however slowly, begins again from nothing.
        """
        self._thread.start()
        applied = -1
        while not self._caught_up:
            if applied == self.catalog.revision:
                self.close()
                raise _not_in_time(self.catalog)
            applied = self.catalog.revision
            with self._changed:
                self._changed.wait_for(lambda: self._caught_up, timeout)
        return self

    @property
    def spoiled(self) -> frozenset[bytes]:
        """Keys whose newest record was refused; see `LogApplier`."""
        return frozenset(self._applier.spoiled)

    def listen(self, listener: Callable[[list[Changed]], None]) -> None:
        """Have *listener* called, on the reader's thread, with every batch of changes from now
        on.
        """
        self._listeners.append(listener)

    def wait_for(self, what: int | Callable[[Catalog], bool], timeout: float = 10.0) -> Catalog:
        """Wait until the log is applied up to a revision, or until a condition holds.

        Raises:
            BusError: it did not happen in time.
        """
        with self._changed:
            done = self._changed.wait_for(
                lambda: (
                    self.catalog.revision >= what if isinstance(what, int) else what(self.catalog)
                ),
                timeout,
            )
        if not done:
            raise _not_in_time(self.catalog)
        return self.catalog

    def catch_up(self, timeout: float = 10.0) -> Catalog:
        """Wait until all is applied that is in the log now: whatever was committed before this was
        called.

        Raises:
            BusError: it did not happen in time, or Kafka cannot say where the log ends.
        """
        end = self._admin.end_offsets([_PARTITION], committed=True)[_PARTITION]
        # what is below the end ends with the mark of a transaction, of which a reader hears late
        return self.wait_for(
            lambda catalog: self._read >= end or catalog.revision >= end - 1, timeout
        )

    def know(self, schema_ids: Iterable[int]) -> None:
        """Return once the definitions of records under *schema_ids* are here, so that none is
        skipped or refused for coming before its own.

        Who writes a record has seen its definition in the log. So the log as it is now is enough,
        and what it does not define is nobody's. While Kafka cannot say where that ends, definitions
        are given some seconds to come.
        """
        missing = [i for i in schema_ids if self.catalog.is_undecided(i)]
        if not missing:
            return
        try:
            self.catch_up(_SCHEMA_PATIENCE)
        except BusError as error:
            _log.warning("definitions are waited for", schema_ids=missing, error=str(error))
            with contextlib.suppress(BusError):
                self.wait_for(
                    lambda catalog: not any(map(catalog.is_undecided, missing)), _SCHEMA_PATIENCE
                )

    @cached_property
    def _admin(self) -> Admin:
        return Admin(self._bootstrap, client_id=self._client_id, timeout=_SCHEMA_PATIENCE)

    def close(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def __enter__(self) -> CatalogReader:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    @vital.run
    def _follow(self) -> None:
        while not self._stop.is_set():
            self._applier.live = False
            try:
                self._read_while(lambda: not self._applier.live, _END_MS)
                self._read_while(lambda: True, REST_MS)
            except BusError as error:
                _log.warning("catalog cannot be read for now", error=str(error))
                self._stop.wait(0.3)

    def _read_while(self, wanted: Callable[[], bool], max_wait_ms: int) -> None:
        """Read on from what is applied, until it is not *wanted* any more or the reader stops."""
        with Reader(
            self._bootstrap,
            {_PARTITION: self.catalog.revision or BEGINNING},
            client_id=self._client_id,
            committed=True,
            ends=True,
            max_wait_ms=max_wait_ms,
        ) as reader:
            while wanted() and not self._stop.is_set():
                self._take(reader.read(timeout=_READ_SECONDS), reader.at_end.get(_PARTITION))

    def _take(self, batches: list[Batch], end: int | None) -> None:
        changes = [change for batch in batches for change in self._applier.apply(batch)]
        with self._changed:
            self._caught_up = self._caught_up or end is not None
            self._applier.live = self._applier.live or end is not None
            self._read = max(self._read, self.catalog.revision, end or 0)
            self._changed.notify_all()
        for listener in self._listeners if changes else ():
            try:
                listener(changes)
            except vital.FAULTS:
                _log.exception("a listener of the catalog failed")


def _not_in_time(catalog: Catalog) -> BusError:
    return BusError(
        "the catalog does not get there in time",
        detail=f"at revision {catalog.revision}",
        retryable=True,
    )
