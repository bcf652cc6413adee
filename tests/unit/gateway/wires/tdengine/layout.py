"""TDengine's layouts of bytes as a client has them, written without a look at the gateway's."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

#: type → bytes of a value and struct's letter; texts have none
FIXED = {
    1: (1, "?"),
    2: (1, "b"),
    3: (2, "h"),
    4: (4, "i"),
    5: (8, "q"),
    6: (4, "f"),
    7: (8, "d"),
    9: (8, "q"),
    11: (1, "B"),
    12: (2, "H"),
    13: (4, "I"),
    14: (8, "Q"),
}
NCHAR, VARBINARY, DECIMAL, DECIMAL_64 = 10, 16, 17, 21
SIZED = (8, NCHAR, 15, VARBINARY)


def read_block(data: bytes) -> list[list[Any]]:
    """Return the columns of a block, and check that it says of itself what it is."""
    version, size, rows, count, _, group = struct.unpack_from("<iiiiIQ", data)
    assert (version, size, group) == (1, len(data), 0)
    at = 28
    heads = []
    for _ in range(count):
        heads.append((data[at], data[at + 1 : at + 5]))
        at += 5
    sizes = struct.unpack_from(f"<{count}i", data, at)
    at += 4 * count
    columns = []
    for (code, told), own in zip(heads, sizes, strict=True):
        head = 4 * rows if code in SIZED else (rows + 7) // 8
        part, body = data[at : at + head], data[at + head : at + head + own]
        assert len(body) == own
        columns.append(
            _texts(code, part, body, rows)
            if code in SIZED
            else _fixed(code, told, part, body, rows)
        )
        at += head + own
    assert at == len(data)
    return columns


def _texts(code: int, part: bytes, body: bytes, rows: int) -> list[Any]:
    found: list[Any] = []
    for place in struct.unpack(f"<{rows}i", part):
        if place < 0:
            found.append(None)
            continue
        (length,) = struct.unpack_from("<H", body, place)
        value = body[place + 2 : place + 2 + length]
        assert len(value) == length
        if code != VARBINARY:
            found.append(value.decode("utf-32-le" if code == NCHAR else "utf-8"))
        else:
            found.append(value)
    return found


def _fixed(code: int, told: bytes, part: bytes, body: bytes, rows: int) -> list[Any]:
    found: list[Any] = []
    for row in range(rows):
        if part[row // 8] >> (7 - row % 8) & 1:
            found.append(None)
        elif code in (DECIMAL, DECIMAL_64):
            width = 16 if code == DECIMAL else 8
            assert told[3] == width
            whole = int.from_bytes(body[row * width : row * width + width], "little", signed=True)
            found.append(Decimal(f"{whole}E-{told[0]}"))
        else:
            width, letter = FIXED[code]
            found.append(struct.unpack_from("<" + letter, body, row * width)[0])
    return found


def write_block(columns: Sequence[tuple[int, Sequence[Any]]]) -> bytes:
    """Return a block of columns, each a type and its values."""
    rows = len(columns[0][1]) if columns else 0
    heads = bodies = b""
    sizes = []
    for code, values in columns:
        front, body = _text_parts(code, values) if code in SIZED else _fixed_parts(code, values)
        heads += struct.pack("<bi", code, FIXED[code][0] if code in FIXED else 64)
        sizes.append(len(body))
        bodies += front + body
    rest = heads + struct.pack(f"<{len(sizes)}i", *sizes) + bodies
    return struct.pack("<iiiiIQ", 1, 28 + len(rest), rows, len(columns), 0, 0) + rest


def _text_parts(code: int, values: Sequence[Any]) -> tuple[bytes, bytes]:
    front = body = b""
    for value in values:
        front += struct.pack("<i", -1 if value is None else len(body))
        if value is not None:
            data = _bytes(value, wide=code == NCHAR)
            body += struct.pack("<H", len(data)) + data
    return front, body


def _fixed_parts(code: int, values: Sequence[Any]) -> tuple[bytes, bytes]:
    bits = bytearray((len(values) + 7) // 8)
    body = b""
    for row, value in enumerate(values):
        if value is None:
            bits[row // 8] |= 1 << (7 - row % 8)
        body += struct.pack("<" + FIXED[code][1], value or 0)
    return bytes(bits), body


def _bytes(value: Any, *, wide: bool) -> bytes:
    if isinstance(value, bytes):
        return value
    return str(value).encode("utf-32-le" if wide else "utf-8")


#: name, tags (type and value) and columns (type and values) of a table
Bound = tuple[str | None, Sequence[tuple[int, Any]], Sequence[tuple[int, Sequence[Any]]]]


def write_bound(tables: Sequence[Bound]) -> bytes:
    """Return what `stmt2_bind` has behind its head."""
    names = [(name or "").encode() + b"\0" for name, _, _ in tables]
    tags = [b"".join(_bound(c, [v]) for c, v in own) for _, own, _ in tables]
    columns = [b"".join(_bound(c, v) for c, v in own) for _, _, own in tables]
    places = []
    parts = b""
    for form, some, there in (
        ("H", names, any(name for name, _, _ in tables)),
        ("I", tags, any(tags)),
        ("I", columns, any(columns)),
    ):
        if not there:
            places.append(0)
            continue
        places.append(28 + len(parts))
        parts += struct.pack(f"<{len(some)}{form}", *map(len, some)) + b"".join(some)
    counts = (len(tables), len(tables[0][1]), len(tables[0][2]))
    return struct.pack("<7I", 28 + len(parts), *counts, *places) + parts


def _bound(code: int, values: Sequence[Any]) -> bytes:
    body = b""
    lengths = []
    for value in values:
        if code in SIZED or code in (DECIMAL, DECIMAL_64):
            data = b"" if value is None else _bytes(value, wide=False)
            lengths.append(len(data))
        else:
            data = struct.pack("<" + FIXED[code][1], value or 0)
        body += data
    nulls = bytes(value is None for value in values)
    sized = struct.pack(f"<{len(lengths)}i", *lengths)
    rest = struct.pack("<ii", code, len(values)) + nulls + bytes([bool(lengths)]) + sized
    rest += struct.pack("<I", len(body)) + body
    return struct.pack("<I", 4 + len(rest)) + rest
