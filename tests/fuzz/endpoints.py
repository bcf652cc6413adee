"""Mutated bytes for everything that decodes what others send: `python -m tests.fuzz.endpoints COUNT
SEED`.

Ends with status 0 when each of them was taken or refused with an error of ours. A crash of the
process is a failure, too.
"""

from __future__ import annotations

import io
import json
import random
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa

from gateway import row_checks, rows
from gateway.ingest import from_json
from gateway.layout import RowLayout
from gateway.websocket import from_binary, from_text
from gateway.wires import lines, otlp_messages, puts, remote_write
from gateway.wires.influxql import parser as influxql
from gateway.wires.otlp_points import read_points
from penstock.client.wire import to_stream
from penstock.codec import compatibility
from penstock.errors import PenstockError
from penstock.feeds.cursor import Cursor
from penstock.foreign.avro import parse, row_of
from penstock.foreign.changes import Changes
from penstock.foreign.envelopes import JsonEnvelopes
from penstock.link.frames import pack, unpack
from penstock.rows.arrow_reader import Opened
from penstock.sql.plan import Column
from penstock.types import ColumnType
from services.tables.intake import _head_of as head_of

_LAYOUT = RowLayout(
    1,
    100,
    "db",
    "t",
    "in.db",
    2,
    (
        Column("time", ColumnType("TIMESTAMP")),
        Column("v", ColumnType("DOUBLE")),
        Column("n", ColumnType("INT")),
        Column("s", ColumnType("VARCHAR", 64)),
        Column("d", ColumnType("DECIMAL", 0, 9, 2)),
        Column("b", ColumnType("VARBINARY", 8)),
    ),
    (),
    "ms",
    10**15,
    True,
)
_AVRO = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "a", "type": ["null", "long"]},
        {"name": "s", "type": {"type": "array", "items": "string"}},
        {
            "name": "d",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
    ],
}
_TABLE = pa.table(
    {
        "time": pa.array(range(1, 41), pa.int64()),
        "v": [0.5] * 40,
        "n": pa.array(range(40), pa.int32()),
        "s": pa.array(["some text", None, "ü" * 9, ""] * 10).dictionary_encode(),
    }
)
#: of a WriteRequest: `up{job="a"} 1` at 1700000000000
SERIES = bytes.fromhex(
    "0a2c0a0e0a085f5f6e616d655f5f120275700a080a036a6f62120161121009000000000000f03f1080d095ffbc31"
)
#: of an ExportMetricsServiceRequest: a gauge `m` of 1.5 with the attribute `a`
METRICS = bytes.fromhex(
    "0a2a122812260a016d2a210a1f1900007a8dcb4ea61721000000000000f83f3a080a016112030a0178"
)
_METRICS_JSON = {
    "resourceMetrics": [
        {
            "resource": {"attributes": [{"key": "a.b", "value": {"intValue": "5"}}]},
            "scopeMetrics": [
                {
                    "metrics": [
                        {
                            "name": "h",
                            "histogram": {
                                "dataPoints": [
                                    {
                                        "timeUnixNano": "1700000000000000000",
                                        "count": "3",
                                        "sum": 0.5,
                                        "bucketCounts": ["1", "2"],
                                        "explicitBounds": [0.5],
                                    }
                                ]
                            },
                        }
                    ]
                }
            ],
        }
    ]
}
#: what mutations like to put in
_ODD = (
    b"\xff" * 4,
    b"\x7f\xff\xff\xff",
    b"\0" * 8,
    b"\\ud83d",
    b"[[[[",
    b'"\n',
    b"{}",
    b"1e999",
    b"\x80" * 9,
    b"NaN",
)


def _stream(table: pa.Table, compression: str | None = None) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(
        sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)
    ) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _arrow(data: bytes) -> None:
    body = from_binary(data)[2]
    table = body.read()
    frame = rows.from_arrow(_LAYOUT, table)
    row_checks.check(_LAYOUT, frame, 10**12)
    # as when it is encoded: every value is copied, also what lies under nulls
    frame.to_arrow()


def _append(data: bytes) -> None:
    body = Opened(data)
    head_of(body)
    body.read()


def _json(data: bytes) -> None:
    row_checks.check(_LAYOUT, rows.from_objects(_LAYOUT, from_json(data)), 10**12)


def _avro() -> tuple[Callable[[bytes], Any], bytes]:
    schema = parse(json.dumps(_AVRO))
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, schema, {"a": 7, "s": ["x", "yy"], "d": Decimal("1.25")})
    return lambda data: row_of(data, schema), sink.getvalue()


def _debezium() -> tuple[Callable[[bytes], Any], list[bytes]]:
    columns = (*_LAYOUT.columns[:1], Column("id", ColumnType("BIGINT")), *_LAYOUT.columns[1:])
    changes = Changes(JsonEnvelopes(), columns, "ms", fixed_time=False)
    row = {"time": 1, "id": 7, "v": 0.5, "n": 3, "s": "x", "d": "ew==", "b": "AP8="}
    change = {"op": "u", "before": row, "after": row | {"time": 2}}
    decimal = {"name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}}
    fields = [{"field": "d", "type": "bytes", **decimal}, {"field": "time", "type": "int64"}]
    schema = {"fields": [{"field": "after", "type": "struct", "fields": fields}]}
    plain = change | {"before": row | {"d": "1.25"}, "after": row | {"d": 1.25}}
    messages = [plain, {"schema": schema, "payload": change}]
    return lambda data: changes.decode([(None, data)]), [json.dumps(m).encode() for m in messages]


def _compare(data: bytes) -> None:
    """Compare a schema of the registry's clients with one of ours."""
    ours = compatibility.parse(json.dumps(_AVRO))
    theirs = compatibility.parse(_text(data))
    compatibility.check("FULL", theirs, [ours])
    compatibility.is_same(theirs, ours)


def _text(data: bytes) -> str:
    return data.decode(errors="surrogateescape")


def endpoints() -> dict[str, tuple[Callable[[bytes], Any], list[bytes]]]:
    """Each decoder, and good bytes for it."""
    decode, message = _avro()
    plain = _TABLE.drop_columns("s").append_column(
        "s",
        pa.array(["abc", None, "a text of more than twelve bytes", None] * 10, pa.string_view()),
    )
    row = b'{"time": 1, "v": 0.5, "n": 3, "s": "text", "d": "1.25", "b": "\\\\x00ff"}'
    line = b'cpu,host=a,dc=x usage=0.5,n=3i,u=7u,ok=t,s="hi\nthere" 1700000000000000000\n'
    return {
        "arrow": (
            _arrow,
            [_stream(_TABLE), _stream(plain), _stream(_TABLE, "lz4"), _stream(plain, "zstd")],
        ),
        "append": (
            _append,
            [
                to_stream(
                    _TABLE,
                    {
                        "penstock.producer": "p",
                        "penstock.seq": "7",
                        "penstock.settled": "3",
                        "penstock.after": "2",
                    },
                )
            ],
        ),
        "link": (unpack, [pack({"ch": 1, "op": "append"}, _TABLE)]),
        "link text": (lambda data: unpack(_text(data)), [b'{"ch": 1, "op": "credit", "n": 4}']),
        "json": (_json, [row, b"[" + row + b"," + row + b"]"]),
        "frame": (
            lambda data: from_text(_text(data)),
            [b'{"seq": 7, "table": "a.b", "rows": [' + row + b"]}"],
        ),
        "lines": (lambda data: lines.parse(data.decode()), [line * 3]),
        "influxql": (
            lambda data: influxql.parse(_text(data), 0),
            [
                b'SELECT mean("v"), max(n) AS m FROM "d"..cpu WHERE host =~ /^a$/ AND time > now() -'
                b" 1h30m GROUP BY time(10s, -5s), host fill(previous) ORDER BY time DESC LIMIT 5",
                b"SHOW TAG VALUES ON d FROM cpu WITH KEY IN (host, 'x'); CREATE DATABASE x",
            ],
        ),
        "put json": (
            lambda data: puts.from_json(_text(data)),
            [
                b'[{"metric": "cpu", "timestamp": 1700000000, "value": 0.5, "tags": {"host": "a"}},'
                b' {"metric": "cpu", "timestamp": 1700000000123, "value": "7", "tags": {"n": 3}}]'
            ],
        ),
        "put telnet": (
            lambda data: puts.from_lines(_text(data)),
            [b"put cpu 1700000000 0.5 host=a dc=x\ncpu 1700000000123 -7e3 host=b\n" * 2],
        ),
        "remote write": (
            lambda data: remote_write.points(remote_write.decompress(data, 1 << 20)),
            [pa.Codec("snappy").compress(SERIES * 3, asbytes=True)],
        ),
        "remote write unpacked": (remote_write.points, [SERIES * 3]),
        "otlp": (lambda data: read_points(otlp_messages.decode(data)), [METRICS * 2]),
        "otlp json": (
            lambda data: read_points(otlp_messages.decode_json(data)),
            [json.dumps(_METRICS_JSON).encode()],
        ),
        "sent schema": (_compare, [json.dumps(_AVRO).encode()]),
        "token": (
            lambda data: Cursor.from_token(_text(data)),
            [Cursor({0: 5, 1: 7}, {"0/a": (1, 2)}).token().encode()],
        ),
        "avro": (decode, [message]),
        "debezium": _debezium(),
        "avro schema": (lambda data: parse(_text(data)), [json.dumps(_AVRO).encode()]),
    }


def mutated(good: bytes, chance: random.Random) -> bytes:
    """*good* with some of its bytes changed, left out, repeated or replaced."""
    data = bytearray(good)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        place = chance.randrange(len(data) + 1)
        kind = chance.randrange(6)
        if kind == 0:
            data[place:place] = chance.choice(_ODD)
        elif kind == 1:
            del data[place : place + chance.randrange(1, 16)]
        elif kind == 2:
            data[place:place] = data[place : place + 32] * chance.choice((1, 2, 50))
        elif kind == 3:
            del data[place:]
        elif place < len(data):
            data[place] = (
                chance.randrange(256) if kind == 4 else data[place] ^ (1 << chance.randrange(8))
            )
    return bytes(data)


def run(count: int, seed: int) -> str:
    """Try *count* mutations; return what went wrong, or an empty text."""
    chance = random.Random(seed)
    known = endpoints()
    for number in range(count):
        name = chance.choice(list(known))
        decode, samples = known[name]
        data = mutated(chance.choice(samples), chance)
        try:
            decode(data)
        except (PenstockError, UnicodeDecodeError):
            continue  # a body that is no UTF-8 is refused before it is parsed
        except BaseException as wrong:
            return f"mutation {number} of seed {seed}, {name}: {type(wrong).__name__}: {wrong!s:.200}\n{data[:2000]!r}"
    return ""


if __name__ == "__main__":
    found = run(int(sys.argv[1]), int(sys.argv[2]))
    print(found or "all were taken or refused")
    sys.exit(bool(found))
