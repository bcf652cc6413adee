"""Rows that flow in while faults happen: each write is repeated under its idempotency key until it
is acknowledged.

What a machine cannot bear it is not given: writes wait while streams are far behind, so a backlog
stays one that ends.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import polars as pl

from penstock.client.connection import Connection, connect
from penstock.client.connection_options import ConnectionOptions
from tests.faults.world import World, persistently

TABLES = 12
START = 1_700_000_000_000
STEP = 250
_CHUNK = 240
#: between two writes: some 600 rows a second, which a machine that is busy with a fault bears, too
_PAUSE_SECONDS = 0.4
#: records that wait for the streams; on a machine of its own a mesh is not that far behind even
#: after a minute without its jobs
_BEARABLE = 3_000


def rows(first: int, count: int) -> pl.DataFrame:
    """Rows *first*.. of a fleet: each table in turn, every table's time growing; with pauses,
    states and events in them.
    """
    n = pl.int_range(first, first + count, eager=True)
    turn = pl.col("n") // TABLES
    return pl.DataFrame({"n": n}).select(
        tbname=pl.format("d{}", pl.col("n") % TABLES),
        # a pause of ten seconds every forty rows of a table ends its session
        ts=START + turn * STEP + turn // 40 * 10_000,
        v=(pl.col("n") * 7919 % 1000) / 10.0,
        k=(turn % 20).cast(pl.Int32),
        state=(turn // 9 % 4).cast(pl.Int32),
        site=pl.format("s{}", pl.col("n") % TABLES % 3),
    )


class Load:
    """A thread that writes to `<database>.m` until told to stop."""

    def __init__(self, world: World, database: str, *, bearable: float = _BEARABLE) -> None:
        """*bearable*: no write begins while more records than these wait."""
        self._world = world
        self._table = f"{database}.m"
        self._bearable = bearable
        self._client: Connection = connect(
            world.mesh.gateway_url,
            password=world.mesh.password,
            options=ConnectionOptions(timeout=20),
        )
        self._halt = threading.Event()
        self._lock = threading.Lock()
        self._acked: list[pl.DataFrame] = []
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="load")

    @contextmanager
    def flowing(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._halt.set()
            self._thread.join()
            self._client.close()
        if self._failure is not None:
            raise self._failure

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """No write is under way inside the `with`."""
        with self._lock:
            yield

    @property
    def sent(self) -> int:
        """Rows that were acknowledged. Raises what ended the writing, so that nobody waits for
        more.
        """
        if self._failure is not None:
            raise self._failure
        return sum(f.height for f in self._acked)

    def all(self) -> pl.DataFrame:
        return pl.concat(self._acked)

    def _run(self) -> None:
        first = 0
        try:
            while not self._halt.wait(_PAUSE_SECONDS):
                if self._world.lag() > self._bearable:
                    continue
                chunk = rows(first, _CHUNK)
                key = uuid.uuid4().hex
                with self._lock:
                    persistently(
                        lambda c=chunk, k=key: self._client.write(self._table, c, idempotency_key=k)
                    )  # type: ignore[misc]
                self._acked.append(chunk)
                first += _CHUNK
        except BaseException as error:
            self._failure = error
