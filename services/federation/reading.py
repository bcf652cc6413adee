"""Questions to the store: one SELECT, its rows in pieces, after everything that was acked before it
came.

Owns the Flight client. Blocks: called from worker threads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as flight
from sqlglot import exp

from penstock.basic_auth import basic_header
from penstock.bus import Admin
from penstock.catalog.reader import CatalogReader
from penstock.errors import PenstockError, RemoteError
from penstock.remote_errors import error_of
from penstock.runtime import tls
from penstock.sql import parse
from penstock.sql.statements import Query

#: rows of a piece; the store's own batches are smaller
_TIMEOUT = 120.0


class StoreReader:
    """Thread-safe."""

    def __init__(
        self,
        url: str,
        user: str,
        password: str,
        catalog: CatalogReader,
        admin: Admin,
        ca: Path | None = None,
    ) -> None:
        self._client = flight.FlightClient(url, **tls.flight_client(url, ca))
        self._catalog = catalog
        self._admin = admin
        header = basic_header(user, password).encode()
        self._options = flight.FlightCallOptions(
            headers=[(b"authorization", header)], timeout=_TIMEOUT
        )

    def run(self, sql: str, database: str, timezone: str, rows: int) -> Iterator[pa.Table]:
        """Pieces of at least *rows* rows (the last may be smaller, or empty); the first carries the
        schema's metadata. The answer is of the catalog that this process knows, or of a later one.

        Raises:
            PenstockError: what the store says, or that it is not there.
        """
        revision = self._catalog.catalog.revision
        ticket = {
            "sql": sql,
            "database": database,
            "timezone": timezone,
            "revision": revision,
            "after": self._ends(sql, database),
            "positions": True,
        }
        try:
            reader = self._client.do_get(flight.Ticket(json.dumps(ticket).encode()), self._options)
            gathered: list[pa.RecordBatch] = []
            count = 0
            given = False
            while True:
                try:
                    gathered.append(reader.read_chunk().data)
                except StopIteration:
                    break
                count += gathered[-1].num_rows
                if count >= rows:
                    yield pa.Table.from_batches(gathered, reader.schema)
                    gathered = []
                    count = 0
                    given = True
            if gathered or not given:
                yield pa.Table.from_batches(gathered, reader.schema)
        except pa.ArrowException as error:
            raise _error(error) from None

    def _ends(self, sql: str, database: str) -> Mapping[str, int]:
        """The last record of every partition that the query reads."""
        topics: dict[str, int] = {}
        for statement in parse(sql):
            if isinstance(statement, Query):
                for node in statement.query.find_all(exp.Table):
                    topics |= self._topics_of(node.db or database, node.name)
        ends = self._admin.end_offsets((t, p) for t, n in topics.items() for p in range(n))
        return {f"{t}:{p}": offset - 1 for (t, p), offset in ends.items() if offset > 0}

    def _topics_of(self, database: str, name: str) -> dict[str, int]:
        """Return the topics in which rows of a table may be, with their numbers of partitions: all
        of its database, where it is a child table or a view.
        """
        catalog = self._catalog.catalog
        if not database:
            return {}
        table = catalog.table(database, name)
        if table is not None:
            return {table.topic: table.partitions}
        home = catalog.database(database)
        if home is None:
            return {}
        return {t.topic: t.partitions for t in catalog.tables(home.name)}

    def close(self) -> None:
        self._client.close()


def _error(error: pa.ArrowException) -> PenstockError:
    text = str(error)
    try:
        body, _ = json.JSONDecoder().raw_decode(
            text, text.index("{")
        )  # gRPC adds its own words behind
        return error_of(body)
    except (ValueError, AttributeError):
        return RemoteError("the store cannot be reached", code="E_STORE_DOWN", detail=text[:200])
