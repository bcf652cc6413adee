"""Read Arrow IPC streams that others have sent: every offset, length and index is checked before
anybody uses the rows.

The only way for such bytes into a process. What the messages declare is added up before anything is
inflated, so a small body that would become a large table is refused at the cost of its headers.
Whatever is wrong with a stream is one SchemaError.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock import tuning
from penstock.errors import SchemaError

_SCHEMA = 1
_DICTIONARY = 2
_BATCH = 3
_PLAIN_LENGTH = -1
_NOT_ASCII = 0x80
_UNREADABLE = (
    pa.ArrowException,
    OSError,
    ValueError,
    KeyError,
    IndexError,
    OverflowError,
    MemoryError,
    struct.error,
)


@dataclass(frozen=True)
class Limits:
    """What a stream may hold.

    Args:
        size: bytes of all buffers once they are inflated, and of all values once dictionaries are
            resolved.
        rows: rows of the stream, and values of any array in it.
        columns: columns of its schema.
        depth: levels of nested types; 0 for flat columns only.
        messages: record batches and dictionaries.
    """

    size: int = 64 << 20
    rows: int = 8 << 20
    columns: int = 4_200
    depth: int = 4
    messages: int = 10_000


#: of a request or WebSocket frame of 16 MiB
DEFAULT = Limits()


def for_body(largest: int) -> Limits:
    """Return limits for bodies of at most *largest* bytes: inflated they may be four times as
    large.
    """
    return Limits(size=max(DEFAULT.size, 4 * largest))


def refuse(detail: object, hint: str = "") -> SchemaError:
    """Make the error for a stream that is not taken."""
    text = str(detail).encode(errors="replace").decode()
    return SchemaError(
        "the body is not an Arrow IPC stream", code="E_BODY", detail=text[:200], hint=hint
    )


class Opened:
    """A stream of which only the schema has been read."""

    def __init__(self, data: bytes | memoryview | pa.Buffer) -> None:
        """Raises SchemaError."""
        self.data = data
        try:
            self._stream = pa.ipc.open_stream(data)
            self.schema: pa.Schema = self._stream.schema
        except _UNREADABLE as wrong:
            raise refuse(wrong) from None

    @property
    def metadata(self) -> dict[str, str]:
        """What the schema says besides its columns."""
        found = self.schema.metadata or {}
        return {k.decode(errors="replace"): v.decode(errors="replace") for k, v in found.items()}

    def read(self, limits: Limits = DEFAULT) -> pa.Table:
        """Return the rows, fully validated; once. Raises SchemaError."""
        try:
            _measure(self.data, limits)
            kinds = _check_schema(self.schema, limits)
            table = self._stream.read_all()
            stored = (_unwrap_extension(table.column(i)) for i in kinds)
            shared = [column for column in stored if _shares(column.type)]
            _check_dictionaries(shared, limits)
            _validate(table, [i for i, kind in kinds.items() if _texts(kind)])
            _check_expanded(shared, limits)
            return _clear_null_views(table, [i for i, kind in kinds.items() if _is_view(kind)])
        except _UNREADABLE as wrong:
            raise refuse(wrong) from None


def read(data: bytes | memoryview | pa.Buffer, limits: Limits = DEFAULT) -> pa.Table:
    """Return the rows of a stream, fully validated. Raises SchemaError."""
    return Opened(data).read(limits)


# ---------------------------------------------------------------- before anything is inflated


class _Table:
    """A table of a flatbuffer, whose offsets Arrow has verified."""

    __slots__ = ("_buffer", "_fields", "_place")

    def __init__(self, buffer: memoryview, place: int) -> None:
        self._buffer = buffer
        self._place = place
        fields = place - struct.unpack_from("<i", buffer, place)[0]
        size = struct.unpack_from("<H", buffer, fields)[0]
        self._fields = struct.unpack_from(f"<{size // 2 - 2}H", buffer, fields + 4)

    @classmethod
    def root(cls, buffer: memoryview) -> _Table:
        return cls(buffer, struct.unpack_from("<I", buffer)[0])

    def _at(self, field: int) -> int:
        offset = self._fields[field] if field < len(self._fields) else 0
        return self._place + offset if offset else 0

    def number(self, field: int, form: str) -> int:
        """A scalar; 0 where it is left out."""
        place = self._at(field)
        return int(struct.unpack_from(form, self._buffer, place)[0]) if place else 0

    def table(self, field: int) -> _Table | None:
        place = self._at(field)
        return (
            _Table(self._buffer, place + struct.unpack_from("<I", self._buffer, place)[0])
            if place
            else None
        )

    def pairs(self, field: int) -> tuple[int, ...]:
        """A vector of structs of two longs, laid out flat."""
        place = self._at(field)
        if not place:
            return ()
        place += struct.unpack_from("<I", self._buffer, place)[0]
        count = struct.unpack_from("<I", self._buffer, place)[0]
        return struct.unpack_from(f"<{2 * count}q", self._buffer, place + 4)


def _measure(data: bytes | memoryview | pa.Buffer, limits: Limits) -> None:
    """Add up what all messages declare. Raises SchemaError."""
    size = 0
    rows = 0
    for batch, body, counts in _batches(data, limits):
        length = batch.number(0, "<q")
        values = batch.pairs(1)[::2]
        if length < 0 or min(values, default=0) < 0:
            raise refuse("a negative length")
        if counts:
            rows += length
        if rows > limits.rows or max(values, default=0) > limits.rows:
            raise refuse(f"it has more than {limits.rows} rows", "send it in parts")
        size += _size_inflated(batch, body)
        if size > limits.size:
            raise refuse(
                f"it has more than {limits.size} bytes when it is inflated", "send it in parts"
            )


def _content(message: pa.ipc.Message) -> tuple[int, _Table]:
    """Return the kind of a message and what it is about."""
    head = _Table.root(memoryview(message.metadata))
    kind = head.number(1, "<B")
    content = head.table(2)
    if content is None or kind not in (_SCHEMA, _DICTIONARY, _BATCH):
        raise refuse("a message that is no schema, dictionary or record batch")
    return kind, content


def _batches(
    data: bytes | memoryview | pa.Buffer, limits: Limits
) -> Iterator[tuple[_Table, memoryview, bool]]:
    """Yield each record batch and dictionary with its body, and whether its rows count."""
    for number, message in enumerate(pa.ipc.MessageReader.open_stream(data)):
        if number > limits.messages:
            raise refuse(f"it has more than {limits.messages} batches", "send larger batches")
        kind, content = _content(message)
        if kind == _SCHEMA:
            if content.number(0, "<h"):
                raise refuse("its numbers are big-endian", "send little-endian ones")
            continue
        body = memoryview(message.body) if message.body is not None else memoryview(b"")
        if kind == _BATCH:
            yield content, body, True
            continue
        if content.number(2, "<?"):
            raise refuse("a dictionary that adds to another", "send whole dictionaries")
        values = content.table(1)
        if values is None:
            raise refuse("a dictionary without values")
        yield values, body, False


def _size_inflated(batch: _Table, body: memoryview) -> int:
    """Return the bytes of a batch's buffers once they are inflated."""
    places = batch.pairs(2)
    starts = places[::2]
    lengths = places[1::2]
    if min(starts, default=0) < 0 or min(lengths, default=0) < 0:
        raise refuse("a buffer with a negative place")
    if max(map(int.__add__, starts, lengths), default=0) > len(body):
        raise refuse("a buffer that lies outside the body")
    if batch.table(3) is None:
        return sum(lengths)
    total = 0
    for start, length in zip(starts, lengths, strict=True):
        if not length:
            continue
        declared = struct.unpack_from("<q", body, start)[0]
        if declared < _PLAIN_LENGTH:
            raise refuse("a buffer with a negative size")
        total += length if declared == _PLAIN_LENGTH else declared
    return total


# ---------------------------------------------------------------- the schema, and the rows


def _check_schema(schema: pa.Schema, limits: Limits) -> dict[int, pa.DataType]:
    """Return the places of columns whose values are not of a fixed width, with their types. Raises
    SchemaError.
    """
    if len(schema) > limits.columns:
        raise refuse(f"it has more than {limits.columns} columns")
    kinds = {i: kind for i, kind in enumerate(schema.types) if not pa.types.is_primitive(kind)}
    for kind in kinds.values():
        _check_type(kind, limits.depth)
    return kinds


def _is_rich(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind)) or _shares(kind)


def _check_type(kind: pa.DataType, depth: int, inside: bool = False) -> None:
    """Refuse types whose values may share bytes without bound, and deeply nested ones."""
    if isinstance(kind, pa.BaseExtensionType):
        _check_type(kind.storage_type, depth, inside)
    elif pa.types.is_dictionary(kind) and _is_rich(kind.value_type):
        raise refuse(f"a dictionary of {kind.value_type}"[:100])
    elif _repeats(kind) or (inside and _shares(kind)):
        raise refuse(f"type {kind} is not taken"[:100])
    elif pa.types.is_nested(kind):
        if depth <= 0:
            raise refuse("its types are nested too deeply")
        for i in range(kind.num_fields):
            _check_type(kind.field(i).type, depth - 1, inside=True)


def _repeats(kind: pa.DataType) -> bool:
    named = pa.types
    views = named.is_list_view(kind) or named.is_large_list_view(kind)
    return bool(views or named.is_run_end_encoded(kind) or named.is_union(kind))


def _unwrap_extension(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return *column* as it is stored: the values of an extension type may share bytes, too."""
    while isinstance(column.type, pa.BaseExtensionType):
        kind = column.type.storage_type
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], kind)
    return column


def _check_dictionaries(columns: Sequence[pa.ChunkedArray], limits: Limits) -> None:
    """Refuse dictionaries that are looked through again and again: each batch has its own look at
    them.
    """
    total = 0
    for column in columns:
        if not pa.types.is_dictionary(column.type):
            continue
        for chunk in column.chunks:
            total += chunk.dictionary.get_total_buffer_size() + len(chunk.dictionary)
            if total > limits.size:
                raise refuse(
                    "its dictionaries are too large for so many batches", "send fewer batches"
                )


def _validate(table: pa.Table, texts: Sequence[int]) -> None:
    """Check all that full validation checks. Raises ArrowInvalid.

    Args:
        table: as it was read.
        texts: places of columns of strings; Arrow takes their values one by one, which costs most
            of the time.
    """
    few = tuning.BATCH_ROWS_VALIDATED_TOGETHER
    if not texts or table.num_rows < few * table.column(texts[0]).num_chunks:
        table.validate(full=True)
        return
    apart = set(texts)
    table.select([i for i in range(table.num_columns) if i not in apart]).validate(full=True)
    for place in texts:
        for chunk in table.column(place).chunks:
            if not len(chunk) or not _is_ascii(chunk):
                chunk.validate(full=True)


def _is_ascii(chunk: pa.Array) -> bool:
    """Tell whether a chunk of strings is valid and holds ASCII only: then its values need no look
    one by one.
    """
    large = pa.types.is_large_string(chunk.type)
    # the same buffers, in which offsets are all that can be wrong
    chunk.view(pa.large_binary() if large else pa.binary()).validate(full=True)
    _, places, values = chunk.buffers()
    ends = np.frombuffer(places, "<i8" if large else "<i4")[chunk.offset :][[0, len(chunk)]]
    return bool(
        ends[0] == ends[1] or np.frombuffer(values, np.uint8)[ends[0] : ends[1]].max() < _NOT_ASCII
    )


def _check_expanded(columns: Sequence[pa.ChunkedArray], limits: Limits) -> None:
    """Refuse values that take far more once each row has its own: dictionaries and views share
    them.
    """
    chunks = [chunk for column in columns for chunk in column.chunks]
    # no value is longer than this: small dictionaries need no look at each row
    if sum(len(chunk) * _longest(chunk) for chunk in chunks) <= limits.size:
        return
    total = 0
    for chunk in chunks:
        total += _size_expanded(chunk)
        if total > limits.size:
            raise refuse(
                f"its values have more than {limits.size} bytes when each row has its own",
                "send it in parts",
            )


def _shares(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind)) or _is_view(_storage_of(kind))


def _is_view(kind: pa.DataType) -> bool:
    kind = _storage_of(kind)
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _storage_of(kind: pa.DataType) -> pa.DataType:
    while isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    return kind


def _clear_null_views(table: pa.Table, places: Sequence[int]) -> pa.Table:
    """Return *table* with the views of nulls set to zero in the columns at *places*.

    Arrow leaves open what a null's view holds, so validation passes over it. Polars follows it all
    the same, and one that leads outside the buffers ends the process.
    """
    for place in places:
        column = _unwrap_extension(table.column(place))
        if column.null_count:
            chunks = [_without_null_views(chunk) for chunk in column.chunks]
            table = table.set_column(place, table.field(place).name, pa.chunked_array(chunks))
    return table


def _without_null_views(chunk: pa.Array) -> pa.Array:
    validity, views, *values = chunk.buffers()
    if not chunk.null_count or validity is None:
        return chunk
    end = chunk.offset + len(chunk)
    valid = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")[chunk.offset : end]
    # a view is 16 bytes
    every = np.frombuffer(views, np.uint64, count=2 * end).reshape(-1, 2)
    cleared = every[chunk.offset :] * valid[:, np.newaxis]
    buffers = [pa.py_buffer(np.packbits(valid, bitorder="little")), pa.py_buffer(cleared), *values]
    return pa.Array.from_buffers(chunk.type, len(chunk), buffers, chunk.null_count)


def _longest(chunk: pa.Array) -> int:
    """Return what no value of a chunk has more bytes than."""
    if pa.types.is_dictionary(chunk.type) and (width := _width(chunk.type.value_type)):
        return width  # a null has it, too, which the dictionary need not hold
    return int(chunk.get_total_buffer_size())


def _width(kind: pa.DataType) -> int:
    """Return the bytes of each value of a type of fixed width; 0 of any other."""
    try:
        return (int(kind.bit_width) + 7) // 8
    except ValueError:
        return 0


def _size_expanded(chunk: pa.Array) -> int:
    if not pa.types.is_dictionary(chunk.type):
        # a view is 16 bytes, of which the first four are its length
        views = np.frombuffer(chunk.buffers()[1], dtype="<i4")[4 * chunk.offset :: 4][: len(chunk)]
        return int(views.clip(0).sum(dtype=np.int64))
    words = chunk.dictionary
    if not (_texts(words.type) or _bytes(words.type)):
        return len(chunk) * _width(words.type)
    lengths = pc.binary_length(words)
    return pc.sum(lengths.take(chunk.indices).cast(pa.int64())).as_py() or 0


def _texts(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
