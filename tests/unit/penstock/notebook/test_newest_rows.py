"""The rows that a live object shows of those that came."""

from __future__ import annotations

import pyarrow as pa

from penstock.notebook.newest_rows import NewestRows


def test_nothing_came() -> None:
    rows = NewestRows()
    assert rows.last(20) == ([], []) and rows.count == 0
    rows.add([])
    assert rows.at == 0.0


def test_the_last_ones_are_kept_in_their_order() -> None:
    rows = NewestRows()
    for n in range(250):
        rows.add([{"n": n}])
    assert rows.count == 250 and rows.at > 0
    assert rows.last(3) == (["n"], [[247], [248], [249]])
    assert len(rows.last(1_000)[1]) == 100
    assert rows.last(0) == (["n"], [])


def test_of_a_large_message_only_its_end_is_kept() -> None:
    rows = NewestRows()
    rows.add([{"n": -1}])
    rows.add(pa.table({"n": range(100_000)}))
    assert rows.last(2) == (["n"], [[99_998], [99_999]])
    (kept,) = rows._pieces
    assert kept.nbytes == 800
    rows.add([{"n": n} for n in range(1_000)])
    assert rows.last(1) == (["n"], [[999]])
    assert [len(piece) for piece in rows._pieces] == [100]


def test_rows_with_other_columns_have_null_there() -> None:
    rows = NewestRows()
    rows.add([{"a": 1}])
    rows.add(pa.table({"b": ["x"]}))
    assert rows.last(9) == (["a", "b"], [[1, None], [None, "x"]])
