"""What a slot has after some calls: the same as its rows have together, however they were cut."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.windows.accumulate.accumulators import Number, Rest, accumulators
from penstock.windows.accumulate.moment_accumulator import Moments
from penstock.windows.accumulate.pick_accumulator import Pick
from penstock.windows.general.parts import Part
from tests.nightly import drawn
from tests.unit.windows.assembly import aggregates_of, call_of, source_rows

_ALL = (
    ("count", None),
    ("count", "v"),
    ("sum", "i"),
    ("sum", "v"),
    ("min", "v"),
    ("max", "i"),
    ("avg", "v"),
    ("first", "v"),
    ("last_row", "i"),
    ("last", "s"),
    ("hyperloglog", "s"),
)
#: an hour a window: all rows of a key are in one
_WIDE = {"size": "1h"}


def _aggregates(*functions):
    return aggregates_of(*functions, **_WIDE)


def test_each_part_goes_where_its_kind_is_kept():
    kinds = [type(a) for a in accumulators(_aggregates(*_ALL, ("stddev_pop", "v")))]
    assert kinds.count(Rest) == 1
    assert kinds[-1] is Rest
    assert Moments in kinds and Pick in kinds and Number in kinds


def test_nothing_is_left_for_polars_where_all_are_numbers():
    made = accumulators(_aggregates(("count", None), ("sum", "i"), ("max", "v")))
    assert {type(a) for a in made} == {Number}


def test_a_text_that_was_chosen_by_time_is_kept_as_an_array_and_one_by_value_is_not():
    assert type(accumulators(_aggregates(("last", "s")))[-1]) is Pick
    assert type(accumulators(_aggregates(("max", "s")))[-1]) is Rest


_line = st.tuples(st.integers(0, 2), st.integers(0, 50), st.none() | st.integers(-9, 9).map(float))


@settings(max_examples=drawn(50), deadline=None)
@given(st.lists(_line, min_size=1, max_size=20), st.integers(0, 20))
def test_calls_add_up_to_what_all_rows_make(lines, cut):
    aggregates = _aggregates(*_ALL)
    made = accumulators(aggregates)
    for each in made:
        each.grow(3)
    for piece in (lines[:cut], lines[cut:]):
        if piece:
            call = call_of(aggregates, piece)
            for each in made:
                each.add(call.keys[call.owner], call)
    groups = np.unique([g for g, *_ in lines])
    columns = [column for each in made for column in each.read(groups)]
    found = aggregates.finalise(pl.DataFrame([pl.Series("_g", groups), *columns]), ["_g"])
    rows = source_rows(lines).with_columns(pl.Series("_g", [g for g, *_ in lines], pl.Int64))
    wanted = aggregates.compute(rows, ["_g"], ordered=False).sort("_g")
    assert found.rows() == wanted.rows()


def _number(kind, dtype=None):
    made = Number(Part(kind, 0, ("p",), dtype or pl.Int64()))
    made.grow(3)
    return made


@pytest.mark.parametrize(
    ("kind", "dtype", "values", "held"),
    [
        ("n", pl.Int64(), [7, 7, 7], 3),
        ("sum", pl.Int64(), [7, -2, 4], 9),
        ("min", pl.Float64(), [7.5, -2.0, 4.0], -2.0),
        ("max", pl.Int32(), [-7, -2, -4], -2),
    ],
)
def test_rows_one_by_one(kind, dtype, values, held):
    number = _number(kind, dtype)
    for value in values:
        number.add_one(1, value)
    assert number.held(1) == held
    untouched = _number(kind, dtype)
    assert number.held(0) == untouched.held(0)


def test_a_reset_slot_is_as_new():
    number = _number("max", pl.Int32())
    empty = number.held(0)
    number.add_one(0, 5)
    number.reset(np.array([0]))
    assert number.held(0) == empty == np.iinfo(np.int32).min


def test_what_was_read_can_be_put_and_null_is_nothing():
    number = _number("min", pl.Float64())
    number.put(np.array([0, 2]), pl.DataFrame({"p": [4.0, None]}))
    assert number.held(2) == np.inf
    assert number.read(np.array([0]))[0].to_list() == [4.0]
    number.add_one(0, 9.0)
    assert number.held(0) == 4.0


def test_the_rest_comes_back_after_it_was_saved_and_compacted():
    aggregates = _aggregates(("max", "s"), ("count", "s"))
    before = accumulators(aggregates)[-1]
    before.grow(2)
    for turn in range(3):
        call = call_of(aggregates, [(0, turn, float(turn)), (1, turn, None)])
        before.add(call.keys[call.owner], call)
    both = np.array([0, 1])
    saved = pl.DataFrame(before.read(both))
    after = accumulators(aggregates)[-1]
    after.grow(2)
    after.put(both, saved)
    after.compact(both)
    assert pl.DataFrame(after.read(both)).equals(saved)
    after.reset(np.array([0]))
    assert after.read(np.array([0]))[0].to_list() == [None]
