"""Reading the rows of a remote table as of one place of its log, and subscribing to what comes
behind it.
"""

from __future__ import annotations

import json

import polars as pl
import pyarrow as pa

from penstock.errors import PenstockError
from penstock.feeds.cursor import Cursor
from penstock.link.channel import Channel
from penstock.link.client import Link
from penstock.link.description import Description
from penstock.link.pool import connect_any
from penstock.link.remote_request import MirrorOptions, RemoteRequest, RemoteTarget, TimeLeft
from penstock.link.row_buffer import schema_of, versions


def snapshot(target: RemoteTarget, options: MirrorOptions) -> pa.Table:
    """Read the rows of this moment, for ever. Raises PenstockError when the other side is not
    there.
    """
    left = TimeLeft(options.wait_timeout_ms)
    request = RemoteRequest(options)
    try:
        with connect_any(target.replicas, timeout=left.step()) as link:
            description = find(link, target, left)
            rows = link.query(request.rows(description), description.database, timeout=left.all())
    except PenstockError as error:
        raise left.explain(error, target) from error
    return rows.cast(schema_of(request.visible_columns(description), description.precision))


def find(link: Link, target: RemoteTarget, left: TimeLeft) -> Description:
    """Ask for the description of the table. Raises PenstockError."""
    return link.resolve(target.table, target.query, target.serial, timeout=left.step())


def read_snapshot(
    link: Link, request: RemoteRequest, description: Description, left: TimeLeft
) -> tuple[list[pl.DataFrame], Cursor]:
    """Read the rows to begin with, as `row_buffer.versions`, and the place in the log that they go
    up to.
    """
    frames: list[pl.DataFrame] = []
    positions: dict[int, int] = {}
    pieces = link.stream_query(
        request.snapshot(description),
        description.database,
        positions=True,
        timeout=left.all(),
    )
    for piece in pieces:
        if not frames:
            positions = _positions(piece.schema)
        frames.append(versions(piece, description, request.columns(description)))
    return frames, Cursor(positions)


def subscribe(
    link: Link,
    target: RemoteTarget,
    request: RemoteRequest,
    description: Description,
    token: str,
    left: TimeLeft,
) -> Channel:
    """Subscribe to what comes behind *token*. Raises PenstockError."""
    channel = link.subscribe(
        request.following(description),
        description.database,
        start=token,
        cycles=request.options.blink,
        query=target.query,
        serial=target.serial,
    )
    channel.expect("subscribed", left.step())
    return channel


def _positions(schema: pa.Schema) -> dict[int, int]:
    """Read from a result's metadata up to where in each partition of the log its rows go."""
    text = (schema.metadata or {}).get(b"penstock.positions", b"{}")
    return {
        int(place.rpartition(":")[2]): int(offset) for place, offset in json.loads(text).items()
    }
