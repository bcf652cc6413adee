"""Records that a reader cannot use, sent to the topic of dead letters."""

from __future__ import annotations

from penstock import names
from penstock.bus.publisher import Publisher
from penstock.records import DeadLetter, encode
from penstock.runtime.log import get

log = get(__name__)


def bury(publisher: Publisher, letter: DeadLetter) -> None:
    """Log a dead letter and send it, without waiting."""
    log.warning(
        "dead letter",
        reader=letter.reader,
        topic=letter.topic,
        partition=letter.partition,
        offset=letter.offset,
        reason=letter.reason,
    )
    publisher.send(names.DEAD_LETTER, encode(letter))
