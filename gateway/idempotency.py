"""A retried write counts once: what the `Idempotency-Key` header promises.

Owns a marker per key in Redis. It is set to pending, with the offsets the log had, before anything
is sent; and to acked afterwards. A retry of an acked key gets the same answer and writes nothing. A
retry of a pending key, whose first try died somewhere, reads the log from the recorded offsets: the
records of a keyed write carry the key, come out the same each time and are in order within a
partition, so what is already there is left out and the rest is sent. A key is refused that comes
with other rows, or while another living gateway is still at it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import polars as pl
import redis

from gateway.layout import RowLayout
from penstock import names
from penstock.bus import Admin, Reader
from penstock.codec import TableCodec, schema_ids
from penstock.errors import BusError, CatalogError, SchemaError
from penstock.runtime import log

_log = log.get("gateway.idempotency")
KEEP_S = 86_400
MAX_KEY_BYTES = 255
_ALIVE_S = 10
_TRACE = "idempotency:"


@dataclass(frozen=True)
class Receipt:
    """Kafka has the rows on all replicas."""

    rows: int
    #: see `gateway.notices`
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """The right to write under a key; `there` counts the records of an earlier try in each
    partition.
    """

    key: str
    there: Mapping[int, int]
    #: how many partitions the topic had that `there` speaks of; the rows may go when there are
    #: others
    partitions: int = 0

    @property
    def trace(self) -> str:
        return _TRACE + self.key

    def rest(self, records: Sequence[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        """Return the records that are not in the log yet."""
        skip = dict(self.there)
        left = []
        for partition, value in records:
            if skip.get(partition, 0) > 0:
                skip[partition] -= 1
            else:
                left.append((partition, value))
        return left


class Ledger:
    """Claims keys. `claim` blocks on Redis and perhaps on the log: call it from a worker thread."""

    def __init__(
        self,
        client: redis.Redis,
        admin: Admin,
        bootstrap: str,
        gateway: str,
        acked: Callable[[str, int], int | None],
    ) -> None:
        """
        Args:
            gateway: id of this process.
            acked: an offset below which nothing of a new write can be, where this process knows
                one.
        """
        self._redis = client
        self._admin = admin
        self._bootstrap = bootstrap
        self._gateway = gateway
        self._acked = acked
        self._background = ThreadPoolExecutor(1, thread_name_prefix="idempotency")

    def heartbeat(self) -> None:
        """Say that this process lives; at least every few seconds."""
        self._redis.set(names.gateway_heartbeat(self._gateway), b"1", ex=_ALIVE_S)

    def claim(self, key: str, digest: str, layout: RowLayout, codec: TableCodec) -> Claim | Receipt:
        """Take the key, or get the answer that was given under it.

        Raises:
            SchemaError: the key was used for other rows (`E_KEY_REUSED`) or is no key.
            CatalogError: another gateway is writing under it now.
            BusError: Redis or Kafka do not answer.
        """
        if not key.isprintable() or len(key.encode()) > MAX_KEY_BYTES:
            raise SchemaError("the idempotency key is not 1 to 255 printable bytes", code="E_BODY")
        try:
            return self._claim(key, digest, layout, codec)
        except redis.RedisError as down:
            raise BusError(
                "idempotency keys need Redis, which does not answer",
                code="E_REDIS_DOWN",
                detail=str(down),
                retryable=True,
            ) from down

    def _claim(
        self, key: str, digest: str, layout: RowLayout, codec: TableCodec
    ) -> Claim | Receipt:
        offsets = {str(p): o for p, o in self._offsets(layout).items()}
        fresh = {
            "state": "pending",
            "digest": digest,
            "gateway": self._gateway,
            "topic": layout.topic,
            "offsets": offsets,
        }
        if self._redis.set(names.idempotency(key), json.dumps(fresh), nx=True, ex=KEEP_S):
            return Claim(key, {})
        held = json.loads(self._redis.get(names.idempotency(key)) or json.dumps(fresh))
        if held["digest"] != digest:
            raise SchemaError(
                "the idempotency key was used for another request",
                code="E_KEY_REUSED",
                hint="use a new key for new rows",
            )
        if held["state"] == "acked":
            return Receipt(held["rows"], tuple(held.get("notices", ())))
        if held["gateway"] != self._gateway and self._redis.exists(
            names.gateway_heartbeat(held["gateway"])
        ):
            raise CatalogError(
                "another gateway is writing under this idempotency key",
                code="E_IN_PROGRESS",
                hint="wait and try again",
            )
        there, partitions = self._find_records(key, held, layout, codec)
        self._redis.set(
            names.idempotency(key), json.dumps({**held, "gateway": self._gateway}), ex=KEEP_S
        )
        _log.info("retry of a write without an answer", key=key, there=sum(there.values()))
        return Claim(key, there, partitions)

    def _find_records(
        self, key: str, held: Mapping[str, Any], layout: RowLayout, codec: TableCodec
    ) -> tuple[dict[int, int], int]:
        """Return how many records of an earlier try each partition has, and for how many partitions
        they were cut.
        """
        begin = {int(p): o for p, o in held["offsets"].items()}
        there = self._scan(key, held["topic"], begin, codec)
        if there or held["topic"] == layout.topic:
            return there, len(begin)
        # partitions have changed since: the rows may have been held meanwhile, and written behind
        # the change
        begins = self._admin.start_offsets([(layout.topic, p) for p in range(layout.partitions)])
        there = self._scan(key, layout.topic, {p: o for (_, p), o in begins.items()}, codec)
        return there, layout.partitions

    def finish(self, claim: Claim, digest: str, receipt: Receipt) -> None:
        """Note that the rows are in the log, in the background: if it is never written, a retry
        finds the records themselves.
        """
        body = json.dumps(
            {"state": "acked", "digest": digest, "rows": receipt.rows, "notices": receipt.notices}
        )
        self._background.submit(
            self._quietly, lambda: self._redis.set(names.idempotency(claim.key), body, ex=KEEP_S)
        )

    def release(self, claim: Claim) -> None:
        """Free the key of rows that were refused before anything was sent."""
        if not claim.there:
            self._background.submit(
                self._quietly, lambda: self._redis.delete(names.idempotency(claim.key))
            )

    def close(self) -> None:
        self._background.shutdown()

    @staticmethod
    def _quietly(action: Callable[[], object]) -> None:
        try:
            action()
        except redis.RedisError as down:
            _log.warning("idempotency marker not written", reason=str(down))

    def _offsets(self, layout: RowLayout) -> dict[int, int]:
        known = {p: self._acked(layout.topic, p) for p in range(layout.partitions)}
        if any(o is None for o in known.values()):
            known |= self._ends(layout.topic, [p for p, o in known.items() if o is None])
        return {p: o for p, o in known.items() if o is not None}

    def _ends(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        ends = {
            p: o for (_, p), o in self._admin.end_offsets([(topic, p) for p in partitions]).items()
        }
        if any(o < 0 for o in ends.values()):  # what the client says when no broker answered
            raise BusError(
                "Kafka does not say where the log ends",
                code="E_KAFKA_DOWN",
                topic=topic,
                retryable=True,
            )
        return ends

    def _scan(
        self, key: str, topic: str, begin: Mapping[int, int], codec: TableCodec
    ) -> dict[int, int]:
        """Count the records under *key* each partition holds from the given offsets on."""
        ends = {(topic, p): o for p, o in self._ends(topic, begin).items()}
        open_ = {(topic, p): o for p, o in begin.items() if o < ends[topic, p]}
        found: dict[int, int] = {}
        if not open_:
            return found
        with Reader(
            self._bootstrap, open_, client_id=f"penstock-gateway-{self._gateway}-retry"
        ) as reader:
            while open_:
                for batch in reader.read():
                    at = (batch.topic, batch.partition)
                    count = _count_records(key, batch.values, codec)
                    if count is not None:
                        found[batch.partition] = found.get(batch.partition, 0) + count
                    if batch.next_offset >= ends[at]:
                        open_.pop(at, None)
        return found


def _count_records(key: str, values: Sequence[bytes | None], codec: TableCodec) -> int | None:
    """Return how many of *values* are records under *key*; None when none looks like one."""
    needle = key.encode()
    mine = [
        v
        for v, i in zip(values, schema_ids(values), strict=True)
        if i == codec.schema_id and v is not None and needle in v
    ]
    if not mine:
        return None
    marks = pl.col("trace").str.split("\n").list.first()
    return codec.decode(mine).records.filter(marks == _TRACE + key).height
