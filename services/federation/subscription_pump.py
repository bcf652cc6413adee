"""Gives one subscription over a link everything behind its cursor, from segments and from the log,
across the generations of its topic.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

from penstock.catalog.model import Table
from penstock.catalog.reader import CatalogReader
from penstock.feeds.cursor import Cursor
from penstock.feeds.feed import Feed, Feeds, Listening, work_on
from penstock.repartition import readers
from services.federation import stored
from services.federation.channel import LinkChannel
from services.federation.lookup import TableLookup
from services.federation.subscription import LinkSubscription

#: a quiet subscription says this often how far it has read
_TOKEN_SECONDS = 1.0


class SubscriptionPump:
    """One life of a subscription."""

    def __init__(
        self,
        channel: LinkChannel,
        subscription: LinkSubscription,
        table: Table,
        *,
        feeds: Feeds,
        lookup: TableLookup,
        catalog: CatalogReader,
        segments_dir: str,
        resume: Callable[[Feed, Cursor], Awaitable[tuple[Feed, Cursor]]],
        permit: Callable[[], None],
    ) -> None:
        """
        Args:
            resume: finds where a cursor goes on, given the feed of the topic that the table has
                now.
            permit: raises PenstockError once the subscription may not go on.
        """
        self._channel = channel
        self._subscription = subscription
        self._table = table
        self._feeds = feeds
        self._lookup = lookup
        self._catalog = catalog
        self._segments_dir = segments_dir
        self._resume = resume
        self._permit = permit

    async def run(self, feed: Feed) -> None:
        """Send what there is and what comes, for as long as `permit` raises nothing."""
        listening = await self._feeds.listen(feed)
        said = self._subscription.token()
        said_at = time.monotonic()
        try:
            while True:
                arrived = listening.arrival()
                self._permit()
                quiet = await self._give_pending(listening)
                following = await self._follow_turn(listening.feed)
                if following is not None:
                    listening.close()
                    listening = await self._feeds.listen(following)
                    self._subscription.select.partitions = len(listening.feed.partitions)
                    quiet = False
                now = time.monotonic()
                if now - said_at >= _TOKEN_SECONDS:
                    token = self._subscription.token()
                    if token != said:
                        said = token
                        said_at = now
                        behind = self._behind(listening.feed)
                        await self._channel.say({"type": "token", "token": token, "behind": behind})
                if quiet:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(_TOKEN_SECONDS):
                            await arrived.wait()
        finally:
            listening.close()

    async def _give_pending(self, listening: Listening) -> bool:
        """Send what lies behind the cursor in each partition; return True if that is all there is
        for now.
        """
        feed = listening.feed
        quiet = True
        ends = self._catalog.catalog.ends(feed.topic)
        for partition, offset in list(self._subscription.cursor.offsets.items()):
            end = ends.get(partition)
            if end is not None and offset > end:
                continue
            if offset < feed.beginnings().get(partition, 0):
                quiet = False
                await self._give_segments(partition, offset, feed.beginnings()[partition])
                continue
            pieces, near = await listening.since(partition, offset, end)
            quiet = quiet and near
            for piece in pieces:
                messages = await work_on(self._subscription.take, piece)
                if messages:
                    messages[-1].header["behind"] = self._behind(feed)
                await self._channel.give(messages)
        return quiet

    async def _follow_turn(self, feed: Feed) -> Feed | None:
        """Return the feed of the next generation once that of *feed* has ended."""
        after = readers.turn(self._catalog.catalog, feed.topic, self._subscription.cursor)
        if after is None:
            return None
        present = await self._feeds.of(self._lookup.present(self._table).topic)
        following, self._subscription.cursor = await self._resume(present, after)
        return following

    async def _give_segments(self, partition: int, start: int, log_begins: int) -> None:
        """Send the records that left the log and are in segments."""
        loop = asyncio.get_running_loop()
        table = self._lookup.present(self._table)
        owner = self._catalog.catalog.topic_owner(table.topic)
        where = await loop.run_in_executor(
            None, stored.position, self._segments_dir, table, partition, owner
        )
        pieces = stored.read(self._segments_dir, table, partition, where, start)
        subscription = self._subscription
        while (piece := await loop.run_in_executor(None, next, pieces, None)) is not None:
            following = int(piece["_offset"][-1]) + 1
            messages = await loop.run_in_executor(
                None, subscription.take_stored, partition, piece, following
            )
            await self._channel.give(messages)
        subscription.cursor.offsets[partition] = max(where.next, log_begins)
        for producer, place in where.producers.items():
            subscription.cursor.check_seen(partition, producer, *place)

    def _behind(self, feed: Feed) -> int:
        """Count the records of the topic that the subscription has not come to."""
        ends = feed.ends()
        offsets = self._subscription.cursor.offsets
        return sum(max(ends.get(p, offset) - offset, 0) for p, offset in offsets.items())
