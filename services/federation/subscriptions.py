"""Subscriptions over a link: whether they may be had, where each begins, and those to external
streams, which are passed on.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any

from sqlglot import exp

from penstock.auth.access import Access
from penstock.catalog.model import External, Table
from penstock.catalog.reader import CatalogReader
from penstock.feeds.cursor import Cursor
from penstock.feeds.feed import Feed, Feeds
from penstock.link import external
from penstock.link.description import require_log
from penstock.link.selection import point_at, source_of
from penstock.outbound.reach import Outbound
from penstock.repartition import readers
from services.federation import relay
from services.federation.channel import LinkChannel
from services.federation.followed_select import FollowedSelect
from services.federation.lookup import TableLookup, TableOrChild
from services.federation.scope import NamedQuery
from services.federation.settings import FederationSettings
from services.federation.subscription import LinkSubscription, Out, begin
from services.federation.subscription_pump import SubscriptionPump


class LinkSubscriptions:
    """Serves subscribe channels."""

    def __init__(
        self,
        settings: FederationSettings,
        catalog: CatalogReader,
        access: Access,
        tables: TableLookup,
        outbound: Outbound,
    ) -> None:
        self._settings = settings
        self._catalog = catalog
        self._access = access
        self._tables = tables
        self._outbound = outbound
        self._feeds = Feeds(settings.kafka_bootstrap, catalog, memory=settings.feed_bytes)

    def close(self) -> None:
        self._feeds.stop()

    async def serve(self, channel: LinkChannel, request: dict[str, Any]) -> None:
        """Send rows on *channel* until it ends."""
        _, select, node = source_of(str(request["sql"]))
        user = channel.user
        home = node.db or str(request.get("database") or "")

        def find(born: bool) -> External | TableOrChild:
            entry = self._tables.external(home, node.name)
            if entry is None:
                return self._tables.find_for(user, "READ", home, node.name, born)
            self._access.require(user, "READ", entry)
            return entry

        found = await self._tables.look(find)
        if isinstance(found, External):
            await self._relay(channel, request, found, select)
            return
        table, child = found
        require_log(table)
        feed, subscription = await self._open(request, table, child)
        first = subscription.schema_message().header
        scope = NamedQuery.of(request)
        if scope is not None:
            scope.check(self._catalog.catalog)
        await channel.say({**first, "type": "subscribed", "token": subscription.token()})
        pump = SubscriptionPump(
            channel,
            subscription,
            table,
            feeds=self._feeds,
            lookup=self._tables,
            catalog=self._catalog,
            segments_dir=self._settings.segments_dir,
            resume=self._resume,
            permit=lambda: self._permit(user, table, scope),
        )
        await pump.run(feed)

    async def _open(
        self, request: dict[str, Any], table: Table, child: str | None
    ) -> tuple[Feed, LinkSubscription]:
        """Make the subscription that a request asks for, with the feed in which it begins."""
        feed = await self._feeds.of(table.topic)
        start = str(request.get("from", "latest"))
        cursor = begin(start, table.id, feed.ends(), feed.beginnings())
        if start not in ("latest", "earliest"):
            feed, cursor = await self._resume(feed, cursor)
        select = FollowedSelect(
            str(request["sql"]),
            lambda: self._catalog.catalog.table_by_id(table.id),
            child,
            str(request.get("timezone") or "UTC"),
            time.time_ns(),
            partitions=len(feed.partitions),
            positions=bool(request.get("positions")),
        )
        cycles = bool(request.get("cycles"))
        return feed, LinkSubscription(cursor, table.id, select, cycles=cycles)

    async def _resume(self, present: Feed, cursor: Cursor) -> tuple[Feed, Cursor]:
        """Return where a token goes on: in the topic that it is of, which may be of an earlier
        generation, if that still has what is wanted.
        """
        topic, cursor = readers.resume(self._catalog.catalog, present.topic, cursor)
        feed = await self._feeds.of(topic)
        beginnings = feed.beginnings()
        if topic != present.topic and any(
            offset < beginnings[p] for p, offset in cursor.offsets.items()
        ):
            # rows that have left the log are in segments of the present generation
            feed = present
            cursor = readers.spread(cursor, len(present.partitions))
        for partition in feed.beginnings():
            cursor.offsets.setdefault(partition, 0)
        return feed, cursor

    async def _relay(
        self, channel: LinkChannel, request: dict[str, Any], entry: External, select: exp.Select
    ) -> None:
        """Pass on the rows of an external stream from where it is."""
        found = relay.messages(
            external.addresses(
                entry, self._settings.data_dir, self._outbound.reach(entry.maker, link=True)
            ),
            point_at(select, entry.remote_database, entry.remote_name),
            entry.remote_database,
            str(request.get("from", "latest")),
            positions=bool(request.get("positions")),
            cycles=bool(request.get("cycles")),
            timezone=str(request.get("timezone") or "UTC"),
            patience=self._settings.connect_seconds,
        )
        async with contextlib.aclosing(found):
            async for message in found:
                await channel.give([Out(message.header, message.rows)])

    def _permit(self, user: str, table: Table, scope: NamedQuery | None) -> None:
        """Check what must hold while a subscription lives. Raises PenstockError."""
        self._tables.present(table)
        self._access.require(user, "READ", table)
        if scope is not None:
            scope.check(self._catalog.catalog)
