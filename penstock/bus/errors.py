"""Errors of Kafka as `BusError`: which of them pass, and which mean that another producer has taken
over.
"""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

from penstock.errors import BusError

#: librdkafka's names of errors that pass
TRANSIENT = {
    "_TRANSPORT",
    "_ALL_BROKERS_DOWN",
    "_TIMED_OUT",
    "_MSG_TIMED_OUT",
    "_QUEUE_FULL",
    "_RESOLVE",
    "_NOENT",
    "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_FOR_PARTITION",
    "REQUEST_TIMED_OUT",
    "FENCED_LEADER_EPOCH",
    "UNKNOWN_LEADER_EPOCH",
    "OFFSET_NOT_AVAILABLE",
    "BROKER_NOT_AVAILABLE",
}


def bus_error(
    error: KafkaError | BaseException,
    message: str,
    *,
    topic: str = "",
    partition: int = -1,
    offset: int = -1,
) -> BusError:
    """Make a `BusError` of *error*: `E_FENCED` when another producer has taken over, else
    `E_BUS`.
    """
    if isinstance(error, KafkaException) and error.args:
        error = error.args[0]
    if not isinstance(error, KafkaError):
        return BusError(message, detail=str(error), topic=topic, partition=partition, offset=offset)
    fenced = error.name() in ("_FENCED", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED")
    code = "E_FENCED" if fenced else "E_BUS"
    retryable = not fenced and (error.retriable() or error.name() in TRANSIENT)
    return BusError(
        message,
        code=code,
        detail=f"{error.name()}: {error.str()}",
        topic=topic,
        partition=partition,
        offset=offset,
        retryable=retryable,
    )
