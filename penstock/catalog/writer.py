"""`CatalogWriter`: the one process that may change the catalog, by lease and by Kafka's
transactional fence.

A writer leads only after it has read the log to its end: it fences older producers, writes a leader
record under its epoch and waits until its own reader has applied it. Every commit is one
transaction and returns when that reader shows it. When anything about a commit is uncertain the
writer steps down; whoever leads next reads what really happened.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future

import redis
import structlog
import tenacity

from penstock import names
from penstock.bus import Delivery, Publisher
from penstock.catalog import entries
from penstock.catalog.model import Entry
from penstock.catalog.reader import CatalogReader
from penstock.catalog.view import Catalog
from penstock.coordination.lease import Holder, Lease
from penstock.errors import BusError, LeaseLost, PenstockError
from penstock.runtime.clock import Clock

_log = structlog.get_logger("penstock.catalog")
LEASE = "catalog"
#: seconds between attempts to take a lease that is about to end
_PAUSE = 0.05
#: refused records that are made good with one commit
_MENDED_AT_ONCE = 1_000


class CatalogWriter:
    """Commits changes while it holds the catalog's lease; safe to call from many threads."""

    def __init__(
        self,
        bootstrap: str,
        client: redis.Redis,
        reader: CatalogReader,
        *,
        address: str,
        clock: Clock | None = None,
        ttl: float = 5.0,
    ) -> None:
        """
        Arguments that need a word:
            reader: a started reader of the same catalog; a commit returns when it has applied it.
            address: where other gateways can forward DDL to while this one leads.
        """
        self._bootstrap = bootstrap
        self._reader = reader
        self._address = address
        self._lease = Lease(client, LEASE, ttl=ttl, address=address, clock=clock)
        self._lock = threading.RLock()
        self._publisher: Publisher | None = None
        self._next_id = self._epoch = 0

    @property
    def catalog(self) -> Catalog:
        return self._reader.catalog

    @property
    def leading(self) -> bool:
        return self._publisher is not None and self._lease.held

    def leader(self) -> Holder | None:
        """Return the present leader, to which DDL is forwarded."""
        return self._lease.holder()

    def lead(self, timeout: float = 10.0) -> bool:
        """Become the leader if nobody is; return True when this process leads now.

        Raises:
            BusError, RemoteError: Kafka or Redis does not let it.
        """
        with self._lock:
            if self.leading:
                return True
            self._step_down()
            if not self._acquire():
                return False
            self._epoch = self._lease.epoch
            try:
                self._publisher = Publisher(
                    self._bootstrap,
                    client_id="penstock-catalog-writer",
                    transactional_id="penstock-catalog",
                    timeout=timeout,
                )
                self._publisher.fence()
                self._lease.keep(
                    lambda lost: _log.warning("the catalog's lease is lost", epoch=lost.epoch)
                )
                self._write(
                    [(entries.LEADER_KEY, entries.leader_value(self._epoch, self.catalog.next_id))],
                    timeout,
                )
                if (
                    self.catalog.epoch > self._epoch
                ):  # Redis had forgotten epochs that the log knows
                    self._step_down()
                    return self.lead(timeout)
            except BaseException:
                self._step_down()
                raise
            self._next_id = self.catalog.next_id
            _log.info("leading the catalog", epoch=self._epoch, revision=self.catalog.revision)
            return True

    def _acquire(self) -> bool:
        """Take the lease unless it is held elsewhere. One that is held at this very address was
        left by a process that is no more: its end is waited for, else DDL that comes just after a
        restart would be forwarded to ourselves.
        """

        def waits_for_own_lease(taken: bool) -> bool:
            holder = None if taken else self._lease.holder()
            return not taken and (holder is None or holder.address == self._address)

        attempts = tenacity.Retrying(
            retry=tenacity.retry_if_result(waits_for_own_lease),
            wait=tenacity.wait_fixed(_PAUSE),
            stop=tenacity.stop_after_delay(self._lease.ttl + 1),
            retry_error_callback=lambda _: False,
        )
        return bool(attempts(lambda: self._lease.acquire(seen=self.catalog.epoch)))

    def new_id(self) -> int:
        """An id that nothing else has or had."""
        with self._lock:
            self._next_id += 1
            return self._next_id - 1

    def commit(
        self, puts: Sequence[Entry], removes: Sequence[Entry] = (), timeout: float = 10.0
    ) -> int:
        """Write all of it or nothing and return the revision that shows it.

        Raises:
            LeaseLost: this process does not lead (any more).
            BusError: Kafka did not confirm; this process has stepped down and the change may or may
                not have happened.
        """
        with self._lock:
            if not self.leading:
                raise LeaseLost(LEASE, self._epoch)
            epoch = self._epoch
            records = self._repairs(epoch)
            records += [(entries.key_of(e), entries.to_value(e, epoch)) for e in puts]
            records += [(entries.key_of(e), None) for e in removes]
            records.append((entries.LEADER_KEY, entries.leader_value(epoch, self._next_id)))
            try:
                return self._write(records, timeout)
            except PenstockError as error:
                self._step_down()
                if error.code == "E_FENCED":
                    raise LeaseLost(LEASE, epoch) from error
                raise

    def _repairs(self, epoch: int) -> list[tuple[bytes, bytes | None]]:
        """Return the true records of keys whose newest record in the log was refused, so that
        compaction keeps these.
        """
        found: list[tuple[bytes, bytes | None]] = []
        for key in sorted(self._reader.spoiled)[:_MENDED_AT_ONCE]:
            number = entries.id_of(key)
            known = self.catalog.by_id(number) if number is not None else None
            if key != entries.LEADER_KEY:
                found.append(
                    (
                        key,
                        entries.to_value(known, epoch)
                        if known is not None and entries.key_of(known) == key
                        else None,
                    )
                )
        return found

    def close(self) -> None:
        """Stop leading, so that another may at once."""
        with self._lock:
            self._step_down()

    def _write(self, records: Sequence[tuple[bytes, bytes | None]], timeout: float) -> int:
        assert self._publisher is not None
        with self._publisher.transaction():
            sent: list[Future[Delivery]] = [
                self._publisher.publish(names.CATALOG, value, key=key, partition=0)
                for key, value in records
            ]
            self._lease.check()
        try:
            revision = sent[-1].result(timeout).offset + 1
        except TimeoutError as error:
            raise BusError("no report about a committed record", topic=names.CATALOG) from error
        self._reader.wait_for(revision, timeout)
        return revision

    def _step_down(self) -> None:
        publisher = self._publisher
        self._publisher = None
        if publisher is not None:
            publisher.close(1.0)
        try:
            self._lease.release()
        except PenstockError as error:
            _log.warning(
                "the catalog's lease could not be given back; it runs out by itself",
                error=str(error),
            )
