"""What small bodies from outside cost: the peak memory of a process of its own that reads them."""

from __future__ import annotations

import base64
import io
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.feeds.cursor import MAX_TOKEN

MIB = 1 << 20
#: of one body, refused or taken
MOST = 80 * MIB
#: loads the one function that reads the body, because most of its time goes into imports
_CHILD = """
import pkgutil, resource, sys
from penstock.errors import PenstockError

read = pkgutil.resolve_name(sys.argv[1])
data = open(sys.argv[2], "rb").read()
if sys.argv[3] == "text":
    data = data.decode()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read(data)
except PenstockError:
    pass
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10)
"""
ARROW = "penstock.rows.arrow_reader:read"
LINK = "penstock.link.frames:unpack"
TOKEN = "penstock.feeds.cursor:Cursor.from_token"
JSON = "gateway.ingest:from_json"


def stream(table: pa.Table, compression: str | None = "zstd") -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(
        sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)
    ) as writer:
        writer.write_table(table)
    return sink.getvalue()


def zeros() -> bytes:
    column = pa.array(np.zeros(2 << 20, dtype=np.int64))
    return stream(pa.table({f"x{i}": column for i in range(12)}))


def one_word_for_all_rows() -> bytes:
    rows = pa.array(np.zeros(1 << 20, dtype=np.int32))
    return stream(pa.table({"x": pa.DictionaryArray.from_arrays(rows, pa.array(["x" * 10_000]))}))


def views_of_one_word() -> bytes:
    word = pa.array(["x" * 10_000], pa.string_view())
    views = np.tile(np.frombuffer(word.buffers()[1], np.uint8), 1 << 18)
    array = pa.Array.from_buffers(
        pa.string_view(), 1 << 18, [None, pa.py_buffer(views), word.buffers()[2]]
    )
    return stream(pa.table({"x": array}))


def long_texts() -> bytes:
    return stream(pa.table({"x": pa.array([b"x" * MIB] * 160, pa.large_binary())}))


def inflated_token() -> bytes:
    return base64.urlsafe_b64encode(zlib.compress(b"[" + b"0," * (64 * MIB) + b"0]"))[:MAX_TOKEN]


BODIES = {
    "zeros": (ARROW, zeros),
    "dictionary": (ARROW, one_word_for_all_rows),
    "views": (ARROW, views_of_one_word),
    "texts": (ARROW, long_texts),
    "link": (LINK, lambda: (2).to_bytes(4, "little") + b"{}" + zeros()),
    "token": (TOKEN, inflated_token),
    "brackets": (JSON, lambda: b"[" * MIB),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_small_body_costs_little_memory(name: str, tmp_path: Path) -> None:
    read, body = BODIES[name]
    place = tmp_path / "body"
    place.write_bytes(body())
    assert place.stat().st_size <= MIB
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, read, str(place), "text" if read == TOKEN else "bytes"],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < MOST, f"{int(done.stdout) >> 20} MiB for {place.stat().st_size} bytes"
