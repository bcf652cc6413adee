"""The place in its source where a materialized view begins."""

from __future__ import annotations

from pathlib import Path

from penstock.bus import Admin
from penstock.catalog.model import External, Table
from penstock.feeds.cursor import Cursor
from penstock.link import external
from penstock.link.pool import connect_any
from penstock.outbound.reach import Outbound
from penstock.sql.words import in_backticks

_CONNECT_S = 5.0


class ViewStart:
    """Asks Kafka, or the other deployment."""

    def __init__(self, admin: Admin, data_dir: Path, outbound: Outbound) -> None:
        """*outbound*: where external streams may be."""
        self._admin = admin
        self._data_dir = data_dir
        self._outbound = outbound

    def tokens(self, source: Table | External, *, earliest: bool) -> tuple[str, ...]:
        """Return a token for each shard: the first record that counts."""
        if isinstance(source, Table):
            return (self._local(source, earliest=earliest),)
        if earliest:
            return ("earliest",) * len(source.shards)
        return self._remote(source)

    def _local(self, source: Table, *, earliest: bool) -> str:
        places = [(source.topic, p) for p in range(source.partitions)]
        ends = dict.fromkeys(places, 0) if earliest else self._admin.end_offsets(places)
        return f"{source.id}.{Cursor({p: o for (_, p), o in ends.items()}).token()}"

    def _remote(self, source: External) -> tuple[str, ...]:
        reach = self._outbound.reach(source.maker, link=True)
        query = f"SELECT * FROM {in_backticks(source.remote_name)}"
        tokens = []
        for replicas in external.addresses(source, self._data_dir, reach):
            with connect_any(replicas, timeout=_CONNECT_S) as link:
                channel = link.subscribe(query, source.remote_database, start="latest")
                tokens.append(str(channel.expect("subscribed", _CONNECT_S * 2).header["token"]))
        return tuple(tokens)
