"""The built-in records: controls, exchange, events, dead letters, manifests and catalog entries, as
bytes and back.

Every one is framed like a row batch (zero byte, schema id), so a topic may mix them;
`schemas.BUILT_IN_IDS` has the ids.
"""

from __future__ import annotations

import dataclasses
import io
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol, Self, TypeVar

import fastavro
import numpy as np
import numpy.typing as npt

import schemas
from penstock.errors import SchemaError

#: body of a delete that is the end of its tables: whoever reads them by name stops
DROPPED = "dropped"


@dataclass(frozen=True)
class ControlRecord:
    """See `schemas/control.avsc`; `time` of a tick is epoch milliseconds."""

    kind: str
    id: str = ""
    stream: int | None = None
    table: int | None = None
    tables: tuple[str, ...] | None = None
    low: int = 0
    high: int = 0
    time: int = 0
    body: str = ""
    producer: str | None = None
    offset: int = -1
    ordinal: int = 0


@dataclass(frozen=True)
class ExchangeRecord:
    stream: int
    producer: str
    from_offset: int
    offset: int
    rows: bytes
    ordinal: int = 0
    last: bool = True


@dataclass(frozen=True)
class EventsRecord:
    stream: int
    stream_name: str
    producer: str
    from_offset: int
    offset: int
    events: str
    ordinal: int = 0
    last: bool = True
    history: bool = False
    trace: str | None = None


class Stretch(Protocol):
    """Records of one partition, however they were read."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offsets(self) -> npt.NDArray[np.int64]: ...
    @property
    def timestamps(self) -> npt.NDArray[np.int64]: ...
    @property
    def values(self) -> list[bytes | None]: ...


@dataclass(frozen=True)
class DeadLetter:
    """What *reader* could not use, at its place; `time` is when it came into the log."""

    topic: str
    partition: int
    offset: int
    reader: str
    code: str
    reason: str
    time: int
    stream: int | None = None
    value: bytes | None = None

    MAX_VALUE = 64 << 10

    @classmethod
    def of(cls, records: Stretch, index: int, reader: str, code: str, reason: str) -> Self:
        """About one of *records*, which it holds as it was."""
        came = int(records.timestamps[index])
        if came < 0:  # brokers of others need not note it
            came = time.time_ns() // 10**6
        return cls(
            records.topic,
            records.partition,
            int(records.offsets[index]),
            reader,
            code,
            reason,
            came,
            value=records.values[index],
        )


@dataclass(frozen=True)
class Manifest:
    query: str
    batch: int
    time: int
    checkpoint: str
    offsets: Mapping[str, int] = field(default_factory=dict)
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class CatalogRecord:
    kind: str
    id: int
    name: str
    epoch: int
    body: str
    version: int = 1


Record = ControlRecord | ExchangeRecord | EventsRecord | DeadLetter | Manifest | CatalogRecord
_T = TypeVar("_T", ControlRecord, ExchangeRecord, EventsRecord, DeadLetter, Manifest, CatalogRecord)

_NAMES: dict[type[Any], str] = {
    ControlRecord: "control",
    ExchangeRecord: "exchange",
    EventsRecord: "events",
    DeadLetter: "dead_letter",
    Manifest: "manifest",
    CatalogRecord: "catalog_entry",
}


@cache
def _parse(name: str) -> Any:
    return fastavro.parse_schema(schemas.load(name))


def encode(record: Record) -> bytes:
    """Framed Avro bytes of *record*; a dead letter's value is cut to what its schema promises."""
    name = _NAMES[type(record)]
    body = {f.name: getattr(record, f.name) for f in dataclasses.fields(record)}
    for item in ("tables", "files"):  # fastavro takes a tuple for a union's branch
        if isinstance(body.get(item), tuple):
            body[item] = list(body[item])
    if isinstance(record, DeadLetter) and record.value is not None:
        body["value"] = record.value[: DeadLetter.MAX_VALUE]
    buffer = io.BytesIO()
    buffer.write(b"\0" + schemas.BUILT_IN_IDS[name].to_bytes(4, "big"))
    fastavro.schemaless_writer(buffer, _parse(name), body)
    return buffer.getvalue()


def decode(kind: type[_T], value: bytes | None) -> _T:
    """The record of type *kind* in *value*.

    Raises:
        SchemaError: it is not one.
    """
    name = _NAMES[kind]
    expected = schemas.BUILT_IN_IDS[name]
    if value is None or len(value) < 5 or value[0] or int.from_bytes(value[1:5], "big") != expected:
        raise SchemaError(
            f"not a {name} record", detail=f"frame {value[:5].hex(' ') if value else 'missing'}"
        )
    try:
        body: Any = fastavro.schemaless_reader(io.BytesIO(value[5:]), _parse(name), None)
    except Exception as error:
        raise SchemaError(f"malformed {name} record", detail=str(error)) from None
    for item in ("tables", "files"):
        if body.get(item) is not None:
            body[item] = tuple(body[item])
    return kind(**body)
