"""What a call has made becomes one emission."""

from __future__ import annotations

import polars as pl

from penstock.windows.emit.output import EmissionBuffer, joined
from penstock.windows.emit.result import Made
from penstock.windows.kernel import Emission

IDENTITY = ["tbname", "ts"]


def lines(*rows):
    schema = {"tbname": pl.String, "ts": pl.Int64, "v": pl.Int64}
    return pl.DataFrame(list(rows), schema=schema, orient="row")


def failing(reason, **columns):
    return pl.DataFrame({"_reason": [reason], **columns})


def test_nothing_made_is_nothing_published():
    out = EmissionBuffer()
    out.put(Made(lines()))
    out.fail(None)
    assert not out.emission(IDENTITY)
    assert out.emission(IDENTITY) == Emission()


def test_rows_made_at_once_keep_their_hashes_and_are_not_copied():
    made = Made(lines(("a", 1, 1), ("b", 1, 2)), hashes=pl.Series([7, 8]))
    out = EmissionBuffer()
    out.put(made)
    out.put(Made(lines(), hashes=pl.Series([], dtype=pl.Int64)))
    emission = out.emission(IDENTITY)
    assert emission.rows is made.rows
    assert emission.hashes is made.hashes


def test_the_last_of_several_lines_for_one_target_row_stands():
    out = EmissionBuffer()
    out.put(Made(lines(("a", 1, 1), ("b", 1, 2)), hashes=pl.Series([7, 8])))
    out.put(Made(lines(("a", 1, 3)), hashes=pl.Series([7])))
    emission = out.emission(IDENTITY)
    assert emission.rows is not None
    assert emission.rows.rows() == [("b", 1, 2), ("a", 1, 3)]
    assert emission.hashes is None, "they are those of other lines"


def test_lines_made_at_once_are_looked_at_only_where_they_may_repeat():
    out = EmissionBuffer()
    out.put(Made(lines(("a", 1, 1), ("a", 1, 2)), hashes=pl.Series([7, 7])))
    assert out.emission(IDENTITY).rows.height == 2
    out.repeats = True
    assert out.emission(IDENTITY).rows.rows() == [("a", 1, 2)]
    assert out.emission(IDENTITY).hashes is None


def test_failures_of_rows_and_of_results_stand_in_order():
    out = EmissionBuffer()
    out.fail(failing("source", v=1))
    out.put(Made(lines(("a", 1, 1)), failing("result", tbname="t")))
    out.late.append(lines(("a", 0, 0)))
    emission = out.emission(IDENTITY)
    assert emission.failed is not None and emission.late is not None
    assert emission.failed["_reason"].to_list() == ["source", "result"]
    assert emission.late.rows() == [("a", 0, 0)]


def test_events_of_a_call_are_sorted_by_write_start_and_rank():
    out = EmissionBuffer()
    for order in ((1, 0, 0, 0), (0, 5, 1, 0), (0, 5, 0, 9), (0, 4, 2, 0)):
        out.events.append((order, {"order": order}))
    found = [event["order"] for event in out.emission(IDENTITY).events]
    assert found == [(0, 4, 2, 0), (0, 5, 0, 9), (0, 5, 1, 0), (1, 0, 0, 0)]


def test_emissions_of_several_calls_are_joined_in_their_order():
    made = joined(
        [
            Emission(rows=lines(("a", 1, 1)), events=[{"n": 2}], late=lines(("x", 1, 1))),
            Emission(),
            Emission(
                rows=lines(("b", 1, 2), ("a", 1, 3)),
                events=[{"n": 1}],
                late=lines(("y", 1, 1)).with_columns(w=pl.lit(1)),
                failed=failing("no"),
            ),
        ],
        IDENTITY,
    )
    assert made.rows is not None and made.rows.rows() == [("b", 1, 2), ("a", 1, 3)]
    assert made.events == [{"n": 2}, {"n": 1}]
    assert made.late is not None and made.late.rows() == [("x", 1, 1, None), ("y", 1, 1, 1)]
    assert made.failed is not None and made.failed.height == 1
    assert joined([Emission()], IDENTITY) == Emission()
