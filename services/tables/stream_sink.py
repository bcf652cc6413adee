"""Results of streams into stream tables: `CREATE STREAM … INTO` a table of a raft group.

The stream writes to a table beside it (its inlet), as any stream writes to any table; whoever leads
reads that log and appends the rows. A result's own position is its sequence number as a producer,
so what is read or was published twice is in the table once. How far the inlet has been read is kept
like the offset of a subscription. Each version of a window is a row of its own: a stream table is
never updated. Deletes have no meaning there and are left out.
"""

from __future__ import annotations

import asyncio
import json

import numpy as np
import polars as pl
import pyarrow as pa

from penstock.bus import Admin, Batch, Reader
from penstock.catalog.model import Table
from penstock.catalog.reader import CatalogReader
from penstock.codec import TableCodec, schema_ids
from penstock.errors import BusError, PenstockError
from penstock.rows.versions import DELETE, without_clears
from penstock.runtime import vital
from penstock.runtime.log import get
from services.tables.election import Election
from services.tables.keeper import ReplicaKeeper
from services.tables.replica import Replica
from services.tables.session import LeaderSession
from services.tables.settings import TablesSettings
from services.tables.writes import Offset, ProducerWrite, offset_producer

log = get(__name__)
_LOOK_SECONDS = 0.2
_RETRY_SECONDS = 0.5
_ORDINAL_BITS = 20
_ARROW = pl.CompatLevel.oldest()


def inlets_of(catalog: CatalogReader, table: Table) -> list[Table]:
    """The inlets of a stream table."""
    return [
        t
        for t in catalog.catalog.tables(table.database)
        if t.options.get("inlet_of") == str(table.id)
    ]


class StreamSinks:
    """Event loop only; reading and decoding happen in threads."""

    def __init__(
        self,
        settings: TablesSettings,
        catalog: CatalogReader,
        keeper: ReplicaKeeper,
        election: Election,
        admin: Admin,
    ) -> None:
        self._settings = settings
        self._catalog = catalog
        self._keeper = keeper
        self._election = election
        self._admin = admin
        self._tasks: dict[tuple[int, LeaderSession], asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Serve the inlets of all tables that this node leads, until cancelled."""
        try:
            while True:
                wanted: dict[tuple[int, LeaderSession], tuple[Replica, Table]] = {}
                for replica in self._keeper.all():
                    session = self._election.session(replica.replicated.group, replica.table.id)
                    if session is not None and session.serving:
                        wanted |= {
                            (t.id, session): (replica, t)
                            for t in inlets_of(self._catalog, replica.table)
                        }
                for key in [k for k, task in self._tasks.items() if k not in wanted or task.done()]:
                    self._tasks.pop(key).cancel()
                for key, (replica, inlet) in wanted.items():
                    if key not in self._tasks:
                        self._tasks[key] = asyncio.create_task(self._serve(replica, key[1], inlet))
                await asyncio.sleep(_LOOK_SECONDS)
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _serve(self, replica: Replica, session: LeaderSession, inlet: Table) -> None:
        try:
            await self._pump(replica, session, inlet)
        except PenstockError as error:
            if not session.over:
                log.warning(
                    "results cannot be taken over for now",
                    table=replica.name,
                    inlet=inlet.name,
                    error=str(error),
                )
                await asyncio.sleep(_RETRY_SECONDS)
        except vital.FAULTS:
            log.exception("results cannot be taken over", table=replica.name, inlet=inlet.name)
            await asyncio.sleep(_RETRY_SECONDS)

    async def _pump(self, replica: Replica, session: LeaderSession, inlet: Table) -> None:
        codec = TableCodec(inlet)
        loop = asyncio.get_running_loop()
        starts = await asyncio.to_thread(self._starts, replica, inlet)
        reader = Reader(
            self._settings.kafka_bootstrap,
            starts,
            client_id=f"inlet-{inlet.id}",
            queue_bytes=8 << 20,
        )
        reading: asyncio.Future[list[Batch]] | None = None
        try:
            while not session.over:
                reading = asyncio.ensure_future(asyncio.to_thread(reader.read, 500, _LOOK_SECONDS))
                for batch in await asyncio.shield(reading):
                    found = await asyncio.to_thread(_results, codec, replica, batch)
                    answers: list[asyncio.Future[int]] = [loop.create_future() for _ in found]
                    for (producer, sequence, data), answer in zip(found, answers, strict=True):
                        session.submit(
                            ProducerWrite(producer, sequence, sequence, data, data.nbytes, answer)
                        )
                    for outcome in await asyncio.gather(*answers, return_exceptions=True):
                        if isinstance(outcome, PenstockError) and outcome.code not in (
                            "E_NOT_LEADER",
                            "E_NO_QUORUM",
                        ):
                            log.error(
                                "a result does not fit the stream table",
                                table=replica.name,
                                error=str(outcome),
                            )
                        elif isinstance(outcome, BaseException):
                            raise outcome
                    if found:
                        kept: asyncio.Future[int] = loop.create_future()
                        session.submit(
                            Offset(
                                offset_producer(_place(inlet, batch.partition)),
                                batch.next_offset,
                                kept,
                            )
                        )
                        await kept
        finally:
            if reading is not None:
                await asyncio.wait(
                    {reading}
                )  # a reader must not be closed under a thread that reads
            await asyncio.to_thread(reader.close)

    def _starts(self, replica: Replica, inlet: Table) -> dict[tuple[str, int], int]:
        """Where to go on in each partition: behind what was taken over, else where the inlet was
        made.
        """
        made = json.loads(inlet.options.get("inlet_from", "{}"))
        oldest = self._admin.start_offsets([(inlet.topic, p) for p in range(inlet.partitions)])
        found = {}
        for (topic, p), start in oldest.items():
            known = replica.copy.producers.get(offset_producer(_place(inlet, p)))
            wanted = known.sequence if known is not None else int(made.get(str(p), 0))
            if known is not None and wanted < start:
                raise BusError(
                    "results were deleted before they were taken over",
                    code="E_OFFSET_GONE",
                    topic=topic,
                    partition=p,
                )
            found[topic, p] = max(wanted, start)
        return found


def _place(inlet: Table, partition: int) -> str:
    return f"inlet/{inlet.id}/{partition}"


def _results(codec: TableCodec, replica: Replica, batch: Batch) -> list[tuple[str, int, pa.Table]]:
    """(producer, sequence number, rows) of each record of results."""
    values = [
        batch.values[i]
        for i in np.flatnonzero(schema_ids(batch.values) == codec.schema_id).tolist()
    ]
    if not values:
        return []
    decoded = codec.decode(values)
    for _, reason in decoded.bad:
        log.error("a record of an inlet cannot be read", table=replica.name, reason=reason)
    names = [
        c.name
        for c in replica.rows.user
        if any(c.name.lower() == x.name.lower() for x in codec.table.columns)
    ]
    rows = without_clears(decoded.rows).filter(pl.col("_op") != DELETE)
    found = []
    for record, producer, offset, ordinal in decoded.records.select(
        "_record", "producer", "offset", "ordinal"
    ).iter_rows():
        part = rows.filter(pl.col("_record") == record).select(pl.col(name) for name in names)
        if producer is not None and part.height:
            found.append(
                (
                    producer,
                    (int(offset) << _ORDINAL_BITS | int(ordinal)) + 1,
                    part.to_arrow(compat_level=_ARROW),
                )
            )
    return found
