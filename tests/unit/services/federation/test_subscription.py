"""How a subscription cuts rows into messages (feature H13)."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from services.federation.subscription import pieces


@given(st.lists(st.integers(1, 12), min_size=1, max_size=20), st.integers(1, 15))
def test_H13_messages_hold_whole_records(records: list[int], most: int) -> None:
    offsets = [10 * i for i, count in enumerate(records) for _ in range(count)]
    rows = pl.DataFrame({"_offset": offsets, "v": range(len(offsets))})
    made = list(pieces(rows, most))
    assert pl.concat(made).equals(rows) and all(0 < piece.height <= most for piece in made)
    for before, after in zip(made, made[1:], strict=False):
        record = before["_offset"][-1]
        assert after["_offset"][0] != record or records[record // 10] > most
