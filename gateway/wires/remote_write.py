"""Bodies of Prometheus remote write, version 1: snappy around protobuf, to points.

Owns the decoding of the messages WriteRequest, TimeSeries, Label and Sample; other fields are
stepped over. No library of the mesh reads protobuf, and these four messages need a page. Nothing is
allocated by what a body says without a limit.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import TypeAlias

import pyarrow as pa

from gateway.wires.points import LineError, Point
from gateway.wires.puts import VALUE_COLUMN
from penstock.errors import SchemaError

#: of one request: fields of protobuf, and bytes of the rows that they make
MOST_FIELDS = 1_000_000
MOST_ROW_BYTES = 128 << 20
_NAME = "__name__"
#: what a value of a row costs besides its text
_CELL = 64
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10
_SIGN = 1 << 63
_SNAPPY = pa.Codec("snappy")
_DOUBLE = struct.Struct("<d")
#: number, wire type, and its value: a whole number, or where its bytes begin and end
Field: TypeAlias = tuple[int, int, int, int]


def decompress(data: bytes, most: int) -> bytes:
    """Return what snappy has packed, if it is no longer than *most*. Raises SchemaError."""
    size, _ = _varint(data, 0, len(data))
    if size > most:
        raise _too_large(f"it has {size} bytes when it is unpacked, and may have {most}")
    try:
        return bytes(_SNAPPY.decompress(data, size, asbytes=True))
    except (pa.ArrowException, OSError) as wrong:
        raise _body_error(f"snappy: {wrong}") from None


def points(data: bytes) -> tuple[list[Point], list[LineError]]:
    """Return a point for each sample of a WriteRequest, and the series that are refused, by their
    numbers; times in milliseconds. Samples that are no number, such as stale marks, are left out.

    Raises:
        SchemaError: it is no WriteRequest, or too large a one.
    """
    return _Request(data).points()


class _Request:
    """A WriteRequest on its way. A few bytes can stand for many rows of long texts, so what its
    rows would take is counted before they are made.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._fields_left = MOST_FIELDS
        self._bytes_left = MOST_ROW_BYTES

    def points(self) -> tuple[list[Point], list[LineError]]:
        found: list[Point] = []
        refused: list[LineError] = []
        number = 0
        for field, wire, start, end in self._fields(0, len(self._data)):
            if field == 1 and wire == _BYTES:
                number += 1
                try:
                    found += self._series(start, end, number)
                except LineError as bad:
                    refused.append(bad)
        return found, refused

    def _series(self, start: int, end: int, number: int) -> list[Point]:
        labels, samples = self._labels_and_samples(start, end, number)
        metric = labels.pop(_NAME, "")
        if not metric:
            raise LineError(f"a series has no label {_NAME}", number)
        # an empty label is one that is not there
        tags = tuple(sorted((name, text) for name, text in labels.items() if name and text))
        self._count(len(samples), tags)
        return [
            Point(metric, tags, {VALUE_COLUMN: value}, time, number)
            for value, time in samples
            if math.isfinite(value)
        ]

    def _labels_and_samples(
        self, start: int, end: int, number: int
    ) -> tuple[dict[str, str], list[tuple[float, int]]]:
        labels: dict[str, str] = {}
        samples: list[tuple[float, int]] = []
        for field, wire, first, last in self._fields(start, end):
            if field == 1 and wire == _BYTES:
                name, value = self._label(first, last)
                if labels.setdefault(name, value) != value:
                    raise LineError(f"label {name[:64]!r} is given twice", number)
            elif field == 2 and wire == _BYTES:
                samples.append(self._sample(first, last))
        return labels, samples

    def _count(self, samples: int, tags: tuple[tuple[str, str], ...]) -> None:
        row = _CELL * (len(tags) + 2) + sum(len(text) for _, text in tags)
        self._bytes_left -= samples * row
        if self._bytes_left < 0:
            raise _too_large(f"its rows are more than {MOST_ROW_BYTES} bytes")

    def _label(self, start: int, end: int) -> tuple[str, str]:
        texts = {1: "", 2: ""}
        for field, wire, first, last in self._fields(start, end):
            if field in texts and wire == _BYTES:
                try:
                    texts[field] = self._data[first:last].decode()
                except UnicodeDecodeError:
                    raise _body_error("a label is not UTF-8") from None
        return texts[1], texts[2]

    def _sample(self, start: int, end: int) -> tuple[float, int]:
        value = 0.0
        time = 0
        for field, wire, found, _ in self._fields(start, end):
            if field == 1 and wire == _FIXED64:
                (value,) = _DOUBLE.unpack_from(self._data, found)
            elif field == 2 and wire == _VARINT:
                time = found - (1 << 64) if found & _SIGN else found
        return value, time

    def _fields(self, at: int, end: int) -> Iterator[Field]:
        """Yield the fields of the message between *at* and *end*. Raises SchemaError."""
        while at < end:
            self._fields_left -= 1
            if self._fields_left < 0:
                raise _too_large(f"it has more than {MOST_FIELDS} fields")
            key, at = _varint(self._data, at, end)
            number, wire = key >> 3, key & 7
            if wire == _VARINT:
                value, at = _varint(self._data, at, end)
                yield number, wire, value, at
                continue
            size, at = self._size(wire, at, end)
            yield number, wire, at, at + size
            at += size

    def _size(self, wire: int, at: int, end: int) -> tuple[int, int]:
        """Return how many bytes the value has that begins at *at*, and where they begin."""
        if wire == _BYTES:
            size, at = _varint(self._data, at, end)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise _body_error(f"wire type {wire}")
        if size > end - at:
            raise _body_error("a field is longer than its message")
        return size, at


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return the number that begins at *at*, and where it ends."""
    value = 0
    for place in range(min(_LONGEST_VARINT, end - at)):
        byte = data[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value & (1 << 64) - 1, at + place + 1
    raise _body_error("a number has no end")


def _body_error(detail: str) -> SchemaError:
    return SchemaError(
        "the body is no request of remote write",
        code="E_BODY",
        detail=detail[:200],
        hint="snappy around a protobuf WriteRequest of version 1",
    )


def _too_large(detail: str) -> SchemaError:
    return SchemaError(
        "the request is too large",
        code="E_TOO_LARGE",
        detail=detail,
        hint="lower max_samples_per_send of Prometheus",
    )
