"""A topic whose partitions begin at given offsets: filled with empty records up to there, which are
deleted afterwards.

Kafka gives every new partition the offset 0. A topic that takes the place of another one goes on
where that ended, so that every position ever told (of segments, state, subscriptions) stays true.
Costs a few bytes and microseconds an offset, once.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.bus import Admin, Publisher

_AT_ONCE = 50_000


def pad(bootstrap: str, admin: Admin, topic: str, ends: Mapping[int, int]) -> None:
    """Bring every partition to its end. Going on in the middle is fine; nobody else may write there
    meanwhile.

    Raises:
        BusError: Kafka does not take it.
    """
    there = admin.end_offsets([(topic, p) for p in ends])
    missing = {p: end - there[topic, p] for p, end in ends.items() if end > there[topic, p]}
    if not missing:
        return
    with Publisher(bootstrap, client_id="penstock-padding", linger_ms=5.0) as bus:
        for partition, count in missing.items():
            while count:
                piece = min(count, _AT_ONCE)
                for _ in range(piece - 1):
                    bus.send(topic, b"", partition=partition)
                # in order within a partition: with the last one all are there
                bus.publish(topic, b"", partition=partition).result(60)
                count -= piece
