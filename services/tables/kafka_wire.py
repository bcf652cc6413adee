"""One record in Kafka's own protocol: what has to be said to a broker to have it appended, and what
it answers. Pure.

Produce in version 3, which brokers from 0.11 to 4 speak; a batch of one record without compression;
a login in front of it. Refused: anything else that Kafka can do. librdkafka does that.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

PRODUCE = 0
HANDSHAKE = 17
VERSIONS = 18
AUTHENTICATE = 36
VERSION = 3
_ALL_REPLICAS = -1
_POLYNOMIAL = 0x82F63B78
#: most bytes of a record: its checksum needs a table of 1 KiB for each
MAX_BYTES = 4096
#: the broker has not written the record and says so: unknown topic, not its leader (any more), or
#: too few replicas
REFUSALS = frozenset({3, 5, 6, 19})


def _tables() -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """What each byte adds to a CRC-32C with so many bytes behind it, and what the initial value
    adds in front of so many.
    """
    one: npt.NDArray[Any] = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        one = np.where(one & 1, (one >> 1) ^ np.uint32(_POLYNOMIAL), one >> 1)
    bytes_ = np.empty((MAX_BYTES, 256), dtype=np.uint32)
    start = np.empty(MAX_BYTES + 1, dtype=np.uint32)
    bytes_[0] = one
    start[0] = 0xFFFFFFFF
    for k in range(1, MAX_BYTES):
        bytes_[k] = one[bytes_[k - 1] & 255] ^ (bytes_[k - 1] >> 8)
    for k in range(1, MAX_BYTES + 1):
        start[k] = one[start[k - 1] & 255] ^ (start[k - 1] >> 8)
    return bytes_, start


_OF_BYTES, _OF_START = _tables()
_DESCENDING = np.arange(MAX_BYTES - 1, -1, -1)


def checksum(data: bytes) -> int:
    """CRC-32C of at most `MAX_BYTES`: all bytes at once, because it is linear."""
    n = len(data)
    parts = _OF_BYTES[_DESCENDING[MAX_BYTES - n :], np.frombuffer(data, dtype=np.uint8)]
    return int(
        np.bitwise_xor.reduce(parts, initial=np.uint32(0)) ^ _OF_START[n] ^ np.uint32(0xFFFFFFFF)
    )


def varint(number: int) -> bytes:
    """A signed number, zigzag."""
    left = (number << 1) ^ (number >> 63)
    found = bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    found.append(left)
    return bytes(found)


def batch(key: bytes, value: bytes, timestamp: int) -> bytes:
    """A record batch of one record; *timestamp* in ms."""
    record = b"\0\0\0" + varint(len(key)) + key + varint(len(value)) + value + b"\0"
    body = (
        struct.pack(">hiqqqhii", 0, 0, timestamp, timestamp, -1, -1, -1, 1)
        + varint(len(record))
        + record
    )
    return struct.pack(">qiibI", 0, len(body) + 9, -1, 2, checksum(body)) + body


def produce(
    correlation: int, client: bytes, topic: bytes, records: bytes, timeout_ms: int
) -> bytes:
    """The request that appends to partition 0 of *topic*, with its length in front."""
    body = struct.pack(">hhih", PRODUCE, VERSION, correlation, len(client)) + client
    body += (
        struct.pack(">hhiih", -1, _ALL_REPLICAS, timeout_ms, 1, len(topic))
        + topic
        + struct.pack(">iii", 1, 0, len(records))
        + records
    )
    return struct.pack(">i", len(body)) + body


def ask_versions(correlation: int, client: bytes) -> bytes:
    """The request for what a broker understands."""
    body = struct.pack(">hhih", VERSIONS, 0, correlation, len(client)) + client
    return struct.pack(">i", len(body)) + body


def speaks(answer: bytes) -> bool:
    """Whether a broker that answers so to `ask_versions` understands our `produce`. *answer* is
    without length and correlation id.
    """
    error, count = struct.unpack_from(">hi", answer)
    kinds = (struct.unpack_from(">hhh", answer, 6 + 6 * i) for i in range(count))
    return error == 0 and any(
        kind == PRODUCE and low <= VERSION <= high for kind, low, high in kinds
    )


def ask_mechanism(correlation: int, client: bytes, mechanism: str) -> bytes:
    """The request that begins a login by SASL's *mechanism*."""
    name = mechanism.encode()
    body = (
        struct.pack(">hhih", HANDSHAKE, 1, correlation, len(client))
        + client
        + struct.pack(">h", len(name))
        + name
    )
    return struct.pack(">i", len(body)) + body


def knows_mechanism(answer: bytes) -> bool:
    """Whether a broker that answers so to `ask_mechanism` goes on with it."""
    (error,) = struct.unpack_from(">h", answer)
    return bool(error == 0)


def authenticate(correlation: int, client: bytes, said: bytes) -> bytes:
    """The request with what the mechanism has to say next."""
    body = (
        struct.pack(">hhih", AUTHENTICATE, 0, correlation, len(client))
        + client
        + struct.pack(">i", len(said))
        + said
    )
    return struct.pack(">i", len(body)) + body


def parse_authentication(answer: bytes) -> bytes | None:
    """What the broker's mechanism says in its answer to `authenticate`; None: it refuses the
    login.
    """
    error, length = struct.unpack_from(">hh", answer)
    at = 4 + max(length, 0)
    (size,) = struct.unpack_from(">i", answer, at)
    return None if error else answer[at + 4 : at + 4 + max(size, 0)]


@dataclass(frozen=True)
class Written:
    """A broker's answer to `produce`; `time` is ms, -1 where the topic does not note when records
    come.
    """

    error: int
    offset: int
    time: int


def parse_produced(answer: bytes) -> Written:
    """What *answer* to `produce` says, which is without length and correlation id."""
    (length,) = struct.unpack_from(">h", answer, 4)
    return Written(*struct.unpack_from(">hqq", answer, 6 + length + 4 + 4))
