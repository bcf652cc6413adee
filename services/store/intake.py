"""From the log to the tails: one thread that reads every ingestion topic, decodes, and cuts tails
into segments in time.

Reads from where the segments end, so a restart repeats nothing that is durable and loses nothing
that is not. A record that cannot be used is a dead letter and the next one goes on. Flushing works
beside the reading (one at a time), so a slow disk delays nobody's rows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import redis

from penstock.bus import REST_MS, Admin, Offsets, Reader
from penstock.catalog.reader import CatalogReader
from penstock.runtime.log import get
from services.store.controls import ControlHandler
from services.store.dead_letters import DeadLetters
from services.store.housekeeping import Housekeeping
from services.store.latest import LatestRows
from services.store.partitions import Partitions
from services.store.quiet_reader import QuietReader
from services.store.record_decoder import RecordDecoder
from services.store.redis_reports import RedisReports
from services.store.settings import StoreSettings
from services.store.tail_flusher import TailFlusher
from services.store.tail_writer import TailWriter
from services.store.topic_follower import TopicFollower

log = get(__name__)

#: after a read of fewer records than this it rests for that many times what they took, so that
#: others gather: taken one by one, a thousand records a second cost a core; unless a query waits
#: for a record
_REST_BELOW = 1000
_REST = 15
_LONGEST_REST = 0.2
#: a partition that is added, or whose record has been taken, waits so long for the others' question
_BUSY_WAIT_MS = 100


class LogIntake(threading.Thread):
    """Runs until `stop`; `failed` holds what ended it early."""

    def __init__(
        self,
        settings: StoreSettings,
        catalog: CatalogReader,
        partitions: Partitions,
        client: redis.Redis,
        on_read: Callable[[int, float], None],
    ) -> None:
        """*on_read*: see `TailWriter`."""
        super().__init__(name="intake", daemon=True)
        self._settings = settings
        self._catalog = catalog
        self._partitions = partitions
        self._dead = DeadLetters(settings.kafka_bootstrap)
        admin = Admin(settings.kafka_bootstrap, client_id="store-admin")
        latest = LatestRows(client)
        reports = RedisReports()
        self._follower = TopicFollower(catalog, partitions, admin, client, reports)
        self._writer = TailWriter(
            catalog,
            partitions,
            RecordDecoder(catalog, self._dead),
            ControlHandler(catalog, partitions, client, latest, self._dead),
            latest,
            reports,
            on_read,
        )
        self._flusher = TailFlusher(settings, catalog, partitions)
        self._housekeeping = Housekeeping(
            settings, catalog, partitions, admin, client, latest, reports, self._flusher
        )
        self._halt = threading.Event()
        self.caught_up = threading.Event()
        self.failed: BaseException | None = None

    def stop(self) -> None:
        """Flush what is there, then end."""
        self._halt.set()
        self.join(timeout=30)

    def run(self) -> None:
        try:
            with QuietReader(self._open_reader) as reader:
                self._catalog.listen(lambda _: reader.wake())
                while not self._halt.is_set():
                    self._follower.step(reader)
                    self.caught_up.set()
                    batches = reader.read(20_000, 0.05)
                    begun = time.monotonic()
                    for batch in batches:
                        self._writer.take(batch)
                    self._housekeeping.step()
                    self._flusher.step()
                    if 0 < sum(map(len, batches)) < _REST_BELOW:
                        rest = min((time.monotonic() - begun) * _REST, _LONGEST_REST)
                        self._partitions.awaited.wait(rest)
                self._finish()
        except BaseException as error:  # noqa: B036  the service must see it and end
            log.exception("intake ended")
            self.failed = error

    def _open_reader(self, offsets: Offsets, at_rest: bool) -> Reader:
        # between two reads it fetches nothing: else the broker would answer for every single record
        return Reader(
            self._settings.kafka_bootstrap,
            offsets,
            client_id="store",
            max_wait_ms=REST_MS if at_rest else _BUSY_WAIT_MS,
            queue_records=1,
        )

    def _finish(self) -> None:
        self._flusher.flush_all()
        self._housekeeping.finish()
        self._flusher.close()
        self._dead.close()
