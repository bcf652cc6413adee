from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as some

from services.tables import kafka_wire as wire


def slowly(data: bytes) -> int:
    """CRC-32C bit by bit."""
    found = 0xFFFFFFFF
    for byte in data:
        found ^= byte
        for _ in range(8):
            found = (found >> 1) ^ (0x82F63B78 if found & 1 else 0)
    return found ^ 0xFFFFFFFF


def test_the_checksum_is_castagnolis() -> None:
    assert wire.checksum(b"123456789") == 0xE3069283
    assert wire.checksum(b"") == 0


@given(some.binary(max_size=300))
def test_the_checksum_of_anything(data: bytes) -> None:
    assert wire.checksum(data) == slowly(data)


@given(some.integers(-(2**31), 2**31 - 1))
def test_numbers_of_any_length(number: int) -> None:
    value = shift = 0
    for byte in wire.varint(number):
        value |= (byte & 0x7F) << shift
        shift += 7
    assert (value >> 1) ^ -(value & 1) == number


def test_what_brokers_answer() -> None:
    answer = struct.pack(">ih2sii", 1, 2, b"t1", 1, 0) + struct.pack(">hqqi", 6, -1, 17, 0)
    assert wire.parse_produced(answer) == wire.Written(6, -1, 17)
    assert wire.speaks(struct.pack(">hihhhhhh", 0, 2, 1, 0, 9, 0, 3, 11))
    assert not wire.speaks(struct.pack(">hihhh", 0, 1, 0, 4, 11))
    assert not wire.speaks(struct.pack(">hi", 35, 0))


def test_a_login_asks_for_its_mechanism_and_says_its_part() -> None:
    asked = wire.ask_mechanism(7, b"me", "SCRAM-SHA-256")
    assert struct.unpack_from(">ihhih", asked) == (len(asked) - 4, 17, 1, 7, 2)
    assert asked.endswith(b"me" + struct.pack(">h", 13) + b"SCRAM-SHA-256")
    said = wire.authenticate(8, b"me", b"\0ann\0pass")
    assert struct.unpack_from(">ihhih", said) == (len(said) - 4, 36, 0, 8, 2)
    assert said.endswith(struct.pack(">i", 9) + b"\0ann\0pass")


def test_what_brokers_say_of_a_login() -> None:
    assert wire.knows_mechanism(struct.pack(">hih", 0, 1, 5) + b"PLAIN")
    assert not wire.knows_mechanism(struct.pack(">hih", 33, 1, 5) + b"PLAIN")
    assert wire.parse_authentication(struct.pack(">hhi", 0, -1, 3) + b"v=x") == b"v=x"
    assert wire.parse_authentication(struct.pack(">hhi", 0, -1, 0)) == b""
    assert (
        wire.parse_authentication(struct.pack(">hh", 58, 2) + b"no" + struct.pack(">i", 0)) is None
    )
