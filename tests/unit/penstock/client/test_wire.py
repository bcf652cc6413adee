from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from penstock.client import wire
from penstock.errors import SchemaError


def test_rows_of_every_form() -> None:
    table = pa.table({"a": [1, 2]})
    for rows in (
        table,
        table.to_batches()[0],
        pl.DataFrame({"a": [1, 2]}),
        pd.DataFrame({"a": [1, 2]}),
    ):
        assert wire.to_table(rows).to_pydict() == {"a": [1, 2]}
    assert wire.is_objects([{}]) and not wire.is_objects(table)
    with pytest.raises(SchemaError):
        wire.to_table(5)  # type: ignore[arg-type]


def test_streams_and_chunks() -> None:
    table = pa.table({"a": list(range(5))})
    parts = list(wire.chunks(table, 2))
    assert [p.num_rows for p in parts] == [2, 2, 1]
    again = wire.from_stream(wire.to_stream(parts[1], {"penstock.seq": "1"}))
    assert (again.to_pydict(), again.schema.metadata) == ({"a": [2, 3]}, {b"penstock.seq": b"1"})
