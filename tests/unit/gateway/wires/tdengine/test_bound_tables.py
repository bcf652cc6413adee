"""What `stmt2_bind` sends is read, and bytes that are none of it are refused."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from gateway.wires.tdengine.bound_tables import BoundTable, read_tables
from penstock.errors import SchemaError
from tests.unit.gateway.wires.tdengine.layout import Bound, write_bound

_TEXT = some.text(some.characters(exclude_categories=("Cs",)), max_size=12)
_VALUES: list[tuple[int, some.SearchStrategy[Any]]] = [
    (1, some.booleans()),
    (4, some.integers(-(2**31), 2**31 - 1)),
    (14, some.integers(0, 2**64 - 1)),
    (7, some.floats(allow_nan=False)),
    (8, _TEXT),
    (10, _TEXT),
    (16, some.binary(max_size=12)),
]


@some.composite
def _bound(draw: some.DrawFn) -> list[Bound]:
    tags = draw(some.lists(some.sampled_from(_VALUES), max_size=3))
    columns = draw(some.lists(some.sampled_from(_VALUES), min_size=1, max_size=3))
    made: list[Bound] = []
    for place in range(draw(some.integers(1, 3))):
        rows = draw(some.integers(1, 5))
        own = [(code, draw(some.none() | values)) for code, values in tags]
        given_ = [
            (code, draw(some.lists(some.none() | values, min_size=rows, max_size=rows)))
            for code, values in columns
        ]
        made.append((f"t{place}ü", own, given_))
    return made


@given(tables=_bound())
def test_what_is_bound_comes_back(tables: list[Bound]) -> None:
    assert read_tables(memoryview(write_bound(tables))) == [
        BoundTable(name, [value for _, value in tags], [list(values) for _, values in columns])
        for name, tags, columns in tables
    ]


def test_names_and_tags_may_be_missing() -> None:
    (found,) = read_tables(memoryview(write_bound([(None, [], [(4, [1, None])])])))
    assert found == BoundTable(None, [], [[1, None]])


@given(tables=_bound(), data=some.data())
def test_other_bytes_are_refused(tables: list[Bound], data: some.DataObject) -> None:
    good = bytearray(write_bound(tables))
    for _ in range(data.draw(some.integers(1, 6))):
        good[data.draw(some.integers(0, len(good) - 1))] = data.draw(some.integers(0, 255))
    cut = data.draw(some.integers(0, len(good)))
    try:
        read_tables(memoryview(bytes(good[:cut])))
    except SchemaError as refused:
        assert refused.code == "E_BODY"
