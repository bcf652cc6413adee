"""Bodies of Prometheus remote write, version 1: snappy around protobuf, to points.

Owns the decoding of the messages WriteRequest, TimeSeries, Label and Sample; other fields are
stepped over.
"""

from __future__ import annotations

import math
import struct

import pyarrow as pa

from gateway.wires.points import LineError, Point
from gateway.wires.puts import VALUE_COLUMN
from gateway.wires.row_budget import RowBudget
from penstock.errors import SchemaError
from penstock.protobuf import BYTES, FIXED64, VARINT, ProtobufReader, signed

#: fields of protobuf of one request
MOST_FIELDS = 1_000_000
_NAME = "__name__"
_SNAPPY = pa.Codec("snappy")
_DOUBLE = struct.Struct("<d")


def decompress(data: bytes, most: int) -> bytes:
    """Return what snappy has packed, if it is no longer than *most*. Raises SchemaError."""
    size, _ = _reader(data).varint(0, len(data))
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


def _reader(data: bytes) -> ProtobufReader:
    return ProtobufReader(data, MOST_FIELDS, _body_error, _too_large)


class _Request:
    """A WriteRequest on its way."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._reader = _reader(data)
        self._budget = RowBudget(_too_large)

    def points(self) -> tuple[list[Point], list[LineError]]:
        found: list[Point] = []
        refused: list[LineError] = []
        number = 0
        for field, wire, start, end in self._reader.fields(0, len(self._data)):
            if field == 1 and wire == BYTES:
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
        self._budget.spend(len(samples), tags)
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
        for field, wire, first, last in self._reader.fields(start, end):
            if field == 1 and wire == BYTES:
                name, value = self._label(first, last)
                if labels.setdefault(name, value) != value:
                    raise LineError(f"label {name[:64]!r} is given twice", number)
            elif field == 2 and wire == BYTES:
                samples.append(self._sample(first, last))
        return labels, samples

    def _label(self, start: int, end: int) -> tuple[str, str]:
        texts = {1: "", 2: ""}
        for field, wire, first, last in self._reader.fields(start, end):
            if field in texts and wire == BYTES:
                texts[field] = self._reader.text(first, last)
        return texts[1], texts[2]

    def _sample(self, start: int, end: int) -> tuple[float, int]:
        value = 0.0
        time = 0
        for field, wire, found, _ in self._reader.fields(start, end):
            if field == 1 and wire == FIXED64:
                (value,) = _DOUBLE.unpack_from(self._data, found)
            elif field == 2 and wire == VARINT:
                time = signed(found)
        return value, time


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
