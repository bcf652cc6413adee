"""What each piece of an aggregate keeps of some rows, and that pieces merge to the same."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.windows.accumulate.sketches import EXACT
from penstock.windows.general.parts import (
    Part,
    PartKind,
    compress,
    expressions_of_partials,
    expressions_of_rows,
)
from tests.nightly import drawn

_ROWS = pl.DataFrame(
    {
        "g": [0, 0, 0, 0, 1],
        "ts": [10, 20, 30, 40, 10],
        "k": [1, 1, 1, 1, 1],
        "_x0": [None, 5, 2, 5, None],
        "_x1": ["a", "b", "c", "d", "e"],
    }
)


def _number(kind: PartKind, argument: int = 0) -> Part:
    return Part(kind, argument, ("p",), pl.Int64())


def _pick(order: str) -> Part:
    return Part("pick", 0, ("p", "p.t", "p.k", "p.c"), pl.Int64(), order, (1,))


def _of(part: Part, rows: pl.DataFrame = _ROWS, key: str | None = "k") -> pl.DataFrame:
    return rows.group_by("g", maintain_order=True).agg(expressions_of_rows(part, "ts", key))


@pytest.mark.parametrize(
    ("kind", "argument", "values"),
    [
        ("n", -1, [4, 1]),  # rows
        ("n", 0, [3, 0]),  # values
        ("sum", 0, [12, 0]),
        ("min", 0, [2, None]),
        ("max", 0, [5, None]),
        ("values", 0, [[5, 2, 5], []]),
    ],
)
def test_numbers_of_rows(kind, argument, values):
    assert _of(_number(kind, argument)).get_column("p").to_list() == values


def test_a_digest_has_a_weight_of_one_for_each_value():
    made = _of(Part("digest", 0, ("m", "w"), pl.Int64()))
    assert made.rows() == [(0, [5.0, 2.0, 5.0], [1.0, 1.0, 1.0]), (1, [], [])]


def test_distinct_keeps_each_register_code_once():
    rows = _ROWS.with_columns(pl.Series("_h0", [None, 7, 3, 7, None]))
    made = _of(Part("distinct", 0, ("p",), pl.Int64()), rows)
    assert [sorted(codes) for codes in made.get_column("p").to_list()] == [[3, 7], []]


@pytest.mark.parametrize(
    ("order", "chosen"),
    [
        ("first", (5, 20, 1, "b")),
        ("last", (5, 40, 1, "d")),
        ("last_row", (5, 40, 1, "d")),
        ("min", (2, 30, 1, "c")),
        ("max", (5, 20, 1, "b")),  # of equal values the earliest
    ],
)
def test_a_pick_brings_time_key_and_companions_of_the_row_that_it_chose(order, chosen):
    assert _of(_pick(order)).row(0)[1:] == chosen


def test_only_last_row_takes_a_null():
    assert _of(_pick("last_row")).row(1)[1:] == (None, 10, 1, "e")
    assert _of(_pick("last")).row(1)[1:] == (None, None, None, None)


@pytest.mark.parametrize(
    ("kind", "dtype", "alone"),
    [
        ("n", pl.Int64(), True),
        ("min", pl.Float64(), True),
        ("sum", pl.Decimal(38, 2), False),
        ("max", pl.String(), False),
        ("pick", pl.Int64(), False),
        ("moments", pl.Float64(), False),
    ],
)
def test_only_machine_numbers_merge_element_by_element(kind, dtype, alone):
    assert Part(kind, 0, ("p",), dtype).elementwise is alone


_PARTS = [
    *(_number(kind) for kind in ("n", "sum", "min", "max", "values")),
    *(_pick(order) for order in ("first", "last", "last_row", "min", "max")),
]
_lines = st.lists(
    st.tuples(st.integers(0, 9), st.none() | st.integers(-3, 3)), min_size=1, max_size=12
).map(lambda lines: sorted(lines, key=lambda line: line[0]))


@settings(max_examples=drawn(60), deadline=None)
@given(_lines, st.data())
@pytest.mark.parametrize("part", _PARTS, ids=lambda p: p.kind + p.order)
def test_pieces_of_the_rows_merge_to_what_all_rows_make(part, lines, data):
    rows = pl.DataFrame(
        {
            "g": [0] * len(lines),
            "ts": [t for t, _ in lines],
            "k": [1] * len(lines),
            "_x0": [x for _, x in lines],
            "_x1": [str(n) for n in range(len(lines))],
        },
        schema_overrides={"_x0": pl.Int64},
    )
    cut = data.draw(st.integers(0, len(lines)))
    pieces = [_of(part, piece) for piece in (rows[:cut], rows[cut:]) if piece.height]
    merged = (
        pl.concat(pieces)
        .group_by("g", maintain_order=True)
        .agg(expressions_of_partials(part, None, "k"))
    )
    assert merged.rows() == _of(part, rows).rows()


def test_only_outgrown_sketches_are_shortened():
    digest = Part("digest", 0, ("m", "w"), pl.Float64())
    registers = Part("distinct", 1, ("d",), pl.Int64())
    number = _number("n", -1)
    size = EXACT + 1
    frame = pl.DataFrame(
        {
            "m": [[float(n) for n in range(size)], [1.0]],
            "w": [[1.0] * size, [1.0]],
            "d": [[64 + 3, 64 + 9, 5], [7]],
            "p": [size, 1],
        },
        schema_overrides={"d": pl.List(pl.UInt32)},
    )
    made = compress(frame, (number, digest, registers))
    assert made.get_column("m").list.len().to_list()[1] == 1
    assert made.get_column("m").list.len().to_list()[0] <= 200
    assert [sorted(d) for d in made.get_column("d").to_list()] == [[5, 64 + 9], [7]]
    assert made.get_column("p").to_list() == [size, 1]
