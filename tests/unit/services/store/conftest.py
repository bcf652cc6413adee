from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from services.store.flush import SegmentLayout

Row = tuple[str, int, int | None, str | None, int, int]


@pytest.fixture
def layout() -> SegmentLayout:
    return SegmentLayout(7, "ts", ("tbname", "ts"), "ms", ("ts",))


@pytest.fixture
def rows() -> Callable[..., pl.DataFrame]:
    """Frame from (tbname, ts, v, w, _op, _offset) tuples."""

    def make(*given: Row) -> pl.DataFrame:
        schema = {
            "tbname": pl.String,
            "ts": pl.Int64,
            "v": pl.Int32,
            "w": pl.String,
            "_op": pl.Int8,
            "_offset": pl.Int64,
        }
        frame = pl.DataFrame(list(given), schema=schema, orient="row")
        return frame.with_columns(_row=pl.int_range(pl.len(), dtype=pl.UInt32))

    return make
