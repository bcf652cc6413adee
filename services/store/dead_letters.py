"""Records that the store cannot use, sent to the topic of dead letters."""

from __future__ import annotations

from penstock.bus import Batch, Publisher
from penstock.bus.dead_letters import bury
from penstock.errors import BusError
from penstock.records import DeadLetter
from penstock.runtime.log import get

log = get(__name__)
#: as which the store reads the log
READER = "store"


class DeadLetters:
    """Used by the thread that reads the log."""

    def __init__(self, bootstrap: str) -> None:
        self._publisher = Publisher(bootstrap, client_id="store-deadletter")

    def bury(self, batch: Batch, index: int, code: str, reason: str) -> None:
        """Send record *index* of *batch*, without waiting."""
        bury(self._publisher, DeadLetter.of(batch, index, READER, code, reason))

    def close(self) -> None:
        """Wait until what was sent is in Kafka."""
        try:
            self._publisher.close()
        except BusError as error:
            log.warning("dead letters were not sent", error=str(error))
