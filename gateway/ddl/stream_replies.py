"""Replies of partition processors about a stream: that it is live, that it has failed, and what
their open windows hold.
"""

from __future__ import annotations

import base64
import io
import secrets
from collections.abc import Collection, Sequence

import polars as pl
import redis

from gateway.children import text
from gateway.ddl.definer import Definer
from gateway.stream_status import live_fields
from penstock import names
from penstock.catalog.model import StreamEntry
from penstock.coordination.redis_link import ask
from penstock.errors import BusError
from penstock.records import ControlRecord
from penstock.sql.plan import OPEN_SPAN


class StreamReplies:
    """`wait_live` and `open_windows` block: call them from worker threads."""

    def __init__(self, definer: Definer, client: redis.Redis) -> None:
        self._definer = definer
        self._redis = client

    def send(self, stream: StreamEntry, control: ControlRecord) -> None:
        """Write *control* to every partition of the stream's source."""
        for topic, partitions in self._definer.catalog.source_topics(stream.plan).items():
            self._definer.send(topic, range(partitions), control)

    def has_failed(self, stream: StreamEntry) -> bool:
        """Tell whether it has stopped in a partition, where its state went with it."""
        fields = ask(lambda: self._redis.hkeys(names.stream_status(stream.id)))
        return any(text(field).startswith(names.FAILED) for field in fields)

    def wait_live(self, stream: StreamEntry) -> None:
        """Return when every partition has taken the stream up and filled its history.

        A topic at rest wakes meanwhile and is not waited for: that the stream begins is in it,
        before all rows to come.
        """
        watch = self._definer.watch
        if not watch.wait_for_jobs or stream.plan.fill_history_async:
            return
        if not stream.plan.fill_history and watch.rests(
            self._definer.catalog.source_topics(stream.plan)
        ):
            return
        wanted = {f.encode() for f in live_fields(self._definer.catalog, stream)}
        key = names.stream_status(stream.id)
        said: dict[bytes | str, bytes | str] = {}

        def is_live() -> bool:
            said.update(self._redis.hgetall(key))
            return said.keys() >= wanted

        while True:
            before = dict(said)
            try:
                watch.until(
                    is_live,
                    f"stream {stream.name} exists but is not live everywhere yet",
                    "SHOW STREAMS tells when it is; is spark_jobs running?",
                )
                return
            except BusError:
                # filling history takes as long as there is history; only what moves no more is
                # waited for in vain
                if said == before or not stream.plan.fill_history:
                    raise

    def open_windows(self, stream: StreamEntry, named: Collection[str]) -> pl.DataFrame:
        """Return results of the windows of a stream that are open now, as `tbname`, columns and
        tags of its result table.

        Args:
            named: names in lower case; those of OPEN_SPAN among them are columns, too.
        """
        return _to_frame(stream, self._ask_windows(stream), named)

    def _ask_windows(self, stream: StreamEntry) -> list[bytes]:
        """Return the windows of each partition, as Arrow streams."""
        request = secrets.token_hex(8)
        key = names.open_windows(request)
        fields = live_fields(self._definer.catalog, stream)
        if stream.plan.path == "exchange":
            fields = {f for f in fields if f.startswith(names.EXCHANGE)}
        self.send(stream, ControlRecord("open_windows", id=request, stream=stream.id))
        wanted = [f.encode() for f in sorted(fields)]
        self._definer.watch.until(
            lambda: all(v is not None for v in self._redis.hmget(key, wanted)),
            f"stream {stream.name} does not answer",
            "is spark_jobs running?",
        )
        return [base64.b64decode(v or b"") for v in ask(lambda: self._redis.hmget(key, wanted))]


def _span_columns(schema: Collection[str], named: Collection[str]) -> list[str]:
    """Return those of the columns of a window's span that the statement names and the result does
    not have under the same name.
    """
    taken = {name.lower() for name in schema}
    return [name for name in OPEN_SPAN if name in named and name not in taken]


def _to_frame(stream: StreamEntry, parts: Sequence[bytes], named: Collection[str]) -> pl.DataFrame:
    target = stream.plan.target
    fields = (*target.columns, *target.tags)
    schema = {"tbname": pl.String(), **{c.name: c.type.polars() for c in fields}}
    span = _span_columns(schema, named)
    schema |= dict.fromkeys(span, pl.Int64())
    # processors of the former version do not know what a window spans
    empty = pl.DataFrame(schema=schema)
    frames = [empty, *(pl.read_ipc_stream(io.BytesIO(p)) for p in parts if p)]
    rows = pl.concat(frames, how="diagonal_relaxed").select(list(schema))
    times = {c.name: target.precision for c in fields if c.type.kind == "TIMESTAMP"}
    times |= dict.fromkeys(span, stream.plan.source.precision)
    return rows.with_columns(pl.col(t).cast(pl.Datetime(p, "UTC")) for t, p in times.items())
