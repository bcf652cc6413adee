"""Changes of the catalog: rules from `penstock.catalog.changes`, topics made before tables.

Owns the one thread in which this gateway changes the catalog. Only the holder of the catalog's
lease changes it; a gateway that does not hold it says who does (`Elsewhere`), and its front
forwards the statement.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from gateway.ddl.mesh_watch import MeshWatch
from gateway.ddl.topics import Topics
from penstock.bus import Delivery, Offsets, Publisher
from penstock.catalog.changes import Change, NewId
from penstock.catalog.principals import owner
from penstock.catalog.reader import CatalogReader
from penstock.catalog.view import Catalog
from penstock.catalog.writer import CatalogWriter
from penstock.errors import BusError, LeaseLost, RemoteError
from penstock.records import ControlRecord, encode

T = TypeVar("T")


class Elsewhere(Exception):
    """Another gateway holds the catalog's lease; `address` is where."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address


class Definer:
    """Runs DDL. Methods without `async` run in the DDL thread."""

    def __init__(
        self,
        reader: CatalogReader,
        writer: CatalogWriter,
        bus: Publisher,
        topics: Topics,
        watch: MeshWatch,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._bus = bus
        self.topics = topics
        self.watch = watch
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ddl")
        #: for whom the DDL thread works at the moment; they own what they make
        self._user = ""
        #: where this action has written records that its user's reads have to wait for
        self._own: dict[tuple[str, int], int] = {}
        #: told of such records at once
        self.noted: Callable[[Offsets], None] = lambda _: None
        #: brings to an end what an earlier leader has left half-done, before anything else is done
        self.settle: Callable[[], None] = lambda: None
        #: told what was written, before the statement is over
        self.committed: Callable[[Change], None] = lambda _: None

    @property
    def catalog(self) -> Catalog:
        return self._reader.catalog

    @property
    def user(self) -> str:
        """Return the user for whom the DDL thread works at the moment."""
        return self._user

    def close(self) -> None:
        self._thread.shutdown()

    async def run(
        self,
        action: Callable[[], T],
        user: str = "",
        own: dict[tuple[str, int], int] | None = None,
    ) -> T:
        """Run *action* in the DDL thread, as the catalog's leader. Raises Elsewhere when another
        gateway is that.

        Args:
            user: gets all rights on what the action makes.
            own: gets the places of the records that reads which follow have to wait for, also when
                the action fails.
        """

        def lead() -> T:
            self._user = user
            self._own = {} if own is None else own
            for last in (False, True):
                self._lead()
                try:
                    self.settle()
                    return action()
                except LeaseLost:
                    if last:
                        raise
            raise AssertionError("unreachable")

        return await asyncio.get_running_loop().run_in_executor(self._thread, lead)

    def _lead(self) -> None:
        if self._writer.leading or self._writer.lead():
            return
        holder = self._writer.leader()
        if holder is None:
            raise RemoteError(
                "no gateway leads the catalog at the moment",
                code="E_LEASE_HELD",
                hint="try again in a second",
            )
        raise Elsewhere(holder.address)

    def commit(self, change: Change) -> int:
        """Make topics that the change needs, then write it; return the catalog's revision."""
        self.topics.prepare(change)
        puts = (*change.puts, *owner(self.catalog, change.puts, self._user))
        if not puts and not change.removes:
            return self.catalog.revision
        revision = self._writer.commit(puts, change.removes)
        self.committed(Change(puts, change.removes))
        return revision

    def decide(self, rule: Callable[[Catalog, NewId], Change]) -> Change:
        """Apply one of the rules of `penstock.catalog.changes` and write what it says."""
        change = rule(self.catalog, self._writer.new_id)
        self.commit(change)
        return change

    def new_id(self) -> int:
        return self._writer.new_id()

    def note_own(self, where: Offsets) -> None:
        """Let reads that follow wait for these records, at whichever gateway they are asked."""
        self._own.update(where)
        self.noted(where)

    def send(
        self, topic: str, partitions: Sequence[int], control: ControlRecord, timeout: float = 10.0
    ) -> dict[int, int]:
        """Write *control* to partitions of a topic; return its offsets, once Kafka has it."""
        value = encode(control)
        sent = {p: self._bus.publish(topic, value, partition=p) for p in partitions}
        found: dict[int, int] = {}
        for p, future in sent.items():
            try:
                delivery: Delivery = future.result(timeout)
            except TimeoutError:
                raise BusError(
                    "Kafka does not confirm a control record",
                    topic=topic,
                    partition=p,
                    retryable=True,
                ) from None
            found[p] = delivery.offset
        return found
