"""SELECTs that come over Flight: after the caller's own writes, with the caller's rights, and only
so many at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

import pyarrow as pa

from penstock.auth.access import Access
from penstock.catalog.model import Table
from penstock.catalog.parameter_types import schema_of
from penstock.errors import BusError, OverloadError
from penstock.rows.parameters import decode
from penstock.runtime.limits import Open
from penstock.sql.parser import read
from services.store.flight_tickets import TicketRequest
from services.store.partitions import Partitions
from services.store.query import Permit, Queries


class FlightQueries:
    """Any thread."""

    def __init__(
        self,
        queries: Queries,
        partitions: Partitions,
        access: Access,
        *,
        reached: Callable[[int, float], object],
        own_writes_seconds: float,
        max_queries: int = 0,
        timed: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """
        Args:
            reached: waits until the catalog is of a revision, for so many seconds at most
                (`CatalogReader.wait_for`).
            max_queries: of one user at a time; 0: as many as come.
            timed: what measures how long a query takes.
        """
        self._queries = queries
        self._partitions = partitions
        self._access = access
        self._reached = reached
        self._patience = own_writes_seconds
        self._timed = timed
        self._open = Open(max_queries)
        self._lock = threading.Lock()

    def run(self, user: str, request: TicketRequest) -> pa.Table:
        """Return the rows of a SELECT. Raises PenstockError."""
        self._await(request.revision or 0, request.after)
        with self.running(user), self._timed():
            return self._queries.run(
                request.sql,
                request.database,
                request.timezone,
                parameters=decode(request.parameters),
                positions=request.positions,
                permit=self._permit_of(user),
            )

    def describe(self, user: str, request: TicketRequest) -> pa.Schema:
        """Return the schema of what a SELECT gives, whatever its parameters are. Raises
        PenstockError.
        """
        with self.running(user):
            return self._queries.describe(
                request.sql, request.database, request.timezone, permit=self._permit_of(user)
            )

    def parameters(self, user: str, request: TicketRequest) -> pa.Schema:
        """Return the names and types of the parameters that a statement takes; tables that *user*
        may not see tell no types. Raises SqlError.
        """

        def find(database: str, name: str) -> Table | None:
            table = self._queries.find_table(database, name)
            return table if table is not None and self._access.sees(user, table) else None

        statements = read(request.sql)
        if len(statements) != 1:
            return pa.schema([])
        return schema_of(statements[0], find, request.database)

    @contextmanager
    def running(self, user: str) -> Iterator[None]:
        """Count one more statement of *user*; gateways have limits of their own. Raises
        OverloadError.
        """
        if user == self._access.root:
            yield
            return
        with self._lock:
            self._open.enter(user)
        try:
            yield
        finally:
            with self._lock:
                self._open.leave(user)

    def _permit_of(self, user: str) -> Permit | None:
        """Return what asks for *user*'s rights; None: all may be read."""
        if user == self._access.root:
            return None
        return lambda *what: self._permit(user, *what)

    def _permit(self, user: str, database: str, name: str, table: Table | None) -> None:
        if table is None:
            self._access.require_named(user, "READ", database, name)
        else:
            self._access.require(user, "READ", table, f"{database}.{name}")

    def _await(self, revision: int, after: Mapping[str, int]) -> None:
        """Read your own writes: wait until every definition the caller knows is here, and every
        record it names is in the tail.
        """
        hint = "try again; `penstock status` shows the lag"
        try:
            self._reached(revision, self._patience)
        except BusError as behind:
            raise OverloadError("the store is behind", detail=behind.detail, hint=hint) from None
        for place, offset in after.items():
            topic, _, partition = place.rpartition(":")
            if not self._partitions.wait_for(topic, int(partition), offset, self._patience):
                raise OverloadError(
                    "the store is behind",
                    detail=f"{topic}[{partition}] has not reached offset {offset}",
                    hint=hint,
                )
