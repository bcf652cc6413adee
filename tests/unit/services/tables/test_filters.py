from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from penstock.errors import PenstockError
from services.tables import filters
from tests.unit.services.tables.kit import stream_table

TABLE = stream_table()
FRAME = pl.DataFrame(
    {
        "ts": [1, 2, 3, 4],
        "row_id": [0, 1, 2, 3],
        "sym": ["A", "B", None, "A"],
        "n": [10, 20, 30, None],
        "came": [None] * 4,
    },
    schema={c.name: c.type.polars() for c in TABLE.columns},
)


@pytest.mark.parametrize(
    ("wanted", "rows"),
    [
        ({"sql": "n >= 20"}, [1, 2]),
        ({"sql": "sym = 'A' AND n < 15"}, [0]),
        ({"column": "sym", "values": ["A", "C"]}, [0, 3]),
        ({"column": "n", "values": [30]}, [2]),
        ({"column": "n", "range": [10, 30]}, [0, 1]),
        ({"column": "sym", "range": ["A", "B"]}, [0, 3]),
        ({"column": "ts", "range": [2, 4]}, [1, 2]),
    ],
)
def test_d34_each_form_passes_its_rows(wanted: dict[str, Any], rows: list[int]) -> None:
    made = filters.make(TABLE, wanted)
    assert made is not None
    assert FRAME.filter(made(FRAME))["row_id"].to_list() == rows


def test_d34_every_row_is_in_one_bucket() -> None:
    found: list[int] = []
    for bucket in range(4):
        made = filters.make(TABLE, {"column": "sym", "hash": [4, bucket]})
        assert made is not None
        found += FRAME.filter(made(FRAME))["row_id"].to_list()
    assert sorted(found) == [0, 1, 2, 3]
    all_ = filters.make(TABLE, {"column": "sym", "hash": [4, 0, 4]})
    assert all_ is not None and all_(FRAME).all()


def test_no_filter_is_none() -> None:
    assert filters.make(TABLE, None) is None


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({"values": [1]}, "E_FILTER"),
        ({"column": "x", "values": [1]}, "E_FILTER"),
        ({"column": "n", "values": ["a"]}, "E_FILTER"),
        ({"column": "n", "range": [1]}, "E_FILTER"),
        ({"column": "n", "hash": [0, 1]}, "E_FILTER"),
        ({"column": "n"}, "E_FILTER"),
        ({"sql": "n + 1"}, "E_FILTER"),
        ({"sql": "nobody > 1"}, "E_UNKNOWN_COLUMN"),
        ({"sql": "n >"}, "E_SYNTAX"),
    ],
)
def test_d34_what_is_no_filter_is_refused(wanted: dict[str, Any], code: str) -> None:
    with pytest.raises(PenstockError) as refused:
        filters.make(TABLE, wanted)
    assert refused.value.code == code
