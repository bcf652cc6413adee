"""Reports on a stream in Redis, by the readers of its source: how far each is, and what it has
counted.

Knows the fields of `names.stream_status`; does not interpret what a stream computes.
"""

from __future__ import annotations

from collections.abc import Sequence

import redis

from gateway.children import text
from penstock import names
from penstock.catalog.model import StreamEntry
from penstock.catalog.view import Catalog
from penstock.coordination.redis_link import ask


def live_fields(catalog: Catalog, stream: StreamEntry) -> set[str]:
    """Return the fields of `names.stream_status` that say a stream is live everywhere."""
    fields = {
        f"{topic}:{p}"
        for topic, partitions in catalog.source_topics(stream.plan).items()
        for p in range(partitions)
    }
    if stream.plan.path == "exchange":
        fields |= {f"{names.EXCHANGE}:{p}" for p in range(names.BUILT_IN_TOPICS[names.EXCHANGE])}
    return fields


def progress(client: redis.Redis, stream: StreamEntry) -> dict[str, str]:
    """Return all fields of a stream's status."""
    return progress_of(client, [stream])[0]


def progress_of(client: redis.Redis, streams: Sequence[StreamEntry]) -> list[dict[str, str]]:
    """Return all fields of the status of each stream, asked for at once."""

    def read() -> list[dict[bytes, bytes]]:
        with client.pipeline(transaction=False) as pipeline:
            for stream in streams:
                pipeline.hgetall(names.stream_status(stream.id))
            return list(pipeline.execute())

    return [{text(k): text(v) for k, v in held.items()} for held in ask(read)]
