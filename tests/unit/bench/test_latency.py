"""A latency belongs to the right row and the right moment."""

import numpy as np
import polars as pl

from bench import latency
from bench.load import Load, Outcome


def _load() -> tuple[Load, Outcome]:
    rows = pl.DataFrame(
        {
            "seq": [0, 1, 2, 3],
            "tbname": ["a", "b", "a", "b"],
            "voltage": [240, 200, 240, 200],
            "due": [0.0, 0.1, 0.2, 0.3],
        }
    )
    rows = rows.with_columns(record=pl.col("seq"))
    due = np.array([0.0, 0.1, 0.2, 0.3])
    outcome = Outcome(due + 10.0, due + 10.001, np.array([5, 7, 6, 8]))
    return Load(rows, due, np.array([0, 1, 0, 1]), [b""] * 4), outcome


def test_a_filtered_row_counts_until_its_own_result_and_the_first_of_them() -> None:
    made, outcome = _load()
    results = pl.DataFrame({"seq": [0, 2, 0], "read_at": [10.003, 10.206, 10.9]})
    found = latency._rows(results, made, outcome, every=False)
    assert found.sort("due")["ms"].round(3).to_list() == [2.0, 5.0]
    assert found.sort("due")["send_ms"].round(3).to_list() == [3.0, 6.0]


def test_a_row_of_a_window_counts_until_its_table_says_so_much() -> None:
    made, outcome = _load()
    # one result of table a covers both its rows; table b has one for its first row only
    results = pl.DataFrame({"seq": [2, 1], "read_at": [10.211, 10.111]})
    found = latency._rows(results, made, outcome, every=True).sort("due")
    assert found["due"].to_list() == [0.0, 0.1, 0.2]
    assert found["ms"].round(3).to_list() == [210.0, 10.0, 10.0]


def test_a_closed_window_counts_from_the_record_that_closed_it() -> None:
    made, outcome = _load()
    results = pl.DataFrame(
        {
            "producer": ["s:1:in.latency:1", "s:1:in.latency:0"],
            "from_offset": [8, 6],
            "read_at": [10.311, 10.204],
        }
    )
    found = latency._closed(results, made, outcome).sort("due")
    assert found["due"].to_list() == [0.2, 0.3]
    assert found["ms"].round(3).to_list() == [3.0, 10.0]


def test_a_result_before_the_acknowledgement_is_no_negative_time() -> None:
    made, outcome = _load()
    results = pl.DataFrame({"seq": [0], "read_at": [10.0005]})
    assert latency._rows(results, made, outcome, every=False)["ms"].to_list() == [0.0]
