from __future__ import annotations

import pyarrow as pa
import pytest

from gateway.websocket import from_binary, from_text
from penstock.client.wire import to_stream
from penstock.errors import SchemaError


def test_text_frames() -> None:
    assert from_text('{"seq": 7, "table": "a.b", "rows": [{"x": 1}], "key": 5}') == (7, "a.b", [{"x": 1}], "5")
    assert from_text('{"rows": []}') == (None, None, [], None)


def test_binary_frames() -> None:
    table = pa.table({"x": [1, 2]})
    seq, name, rows, key = from_binary(to_stream(table, {"penstock.seq": "12", "penstock.table": "a.b"}))
    assert (seq, name, rows.to_pydict(), key) == (12, "a.b", {"x": [1, 2]}, None)
    assert from_binary(to_stream(table, {"penstock.seq": "x", "penstock.key": "k"}))[::3] == ("x", "k")


@pytest.mark.parametrize("frame", ["", "[]", "1", '{"rows": {}}', '{"seq": 1}', '{"rows": [NaN]}', "[" * 100_000])
def test_frames_that_are_none(frame: str) -> None:
    with pytest.raises(SchemaError):
        from_text(frame)


@pytest.mark.parametrize("frame", [b"", b"x" * 100, to_stream(pa.table({"x": [1]}))[:40]])
def test_binary_frames_that_are_none(frame: bytes) -> None:
    with pytest.raises(SchemaError):
        from_binary(frame)
