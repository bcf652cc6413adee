"""Records as they are read from Kafka, and the places where they were written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from confluent_kafka import Message

#: (topic, partition) → offset
Offsets = Mapping[tuple[str, int], int]
BEGINNING = -2
END = -1
MAX_MESSAGE_BYTES = 8 << 20


@dataclass(frozen=True)
class Delivery:
    """Topic, partition and offset of a written record. `timestamp` is milliseconds, the broker's
    append time where the topic says so.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int


@dataclass(frozen=True)
class Batch:
    """Consecutive records of one partition as they were read; the four lists are of one length."""

    topic: str
    partition: int
    offsets: npt.NDArray[np.int64]
    timestamps: npt.NDArray[np.int64]
    keys: list[bytes | None]
    values: list[bytes | None]

    def __len__(self) -> int:
        return len(self.values)

    @property
    def next_offset(self) -> int:
        return int(self.offsets[-1]) + 1


def topic_partition(message: Message) -> tuple[str, int]:
    """Return the topic and partition of *message*."""
    partition = message.partition()
    return message.topic() or "", -1 if partition is None else partition
