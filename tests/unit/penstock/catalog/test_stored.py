"""Stored names: given once, whatever happens to the columns afterwards."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from itertools import count

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog import changes, entries
from penstock.catalog.model import Database, Table, TableVersion
from penstock.catalog.stored import present, present_rows, written
from penstock.catalog.view import Catalog
from penstock.sql.plan import Column
from penstock.types import ColumnType
from tests.nightly import drawn

INT = ColumnType("INT")
TEXT = ColumnType("VARCHAR", 8)
COLUMNS = (Column("ts", ColumnType("TIMESTAMP")), Column("v", INT))


def altered(*steps: Callable[[Catalog, Callable[[], int]], changes.Change]) -> Table:
    """A table with tags `a` and `z` after *steps*."""
    numbers = count(101)
    first = TableVersion(100, COLUMNS, (Column("a", INT), Column("z", INT)))
    catalog = Catalog(
        [Database(9, "db"), Table(7, "db", "t", "stable", "in.db", 1, "ms", (first,))]
    )
    for step in steps:
        for entry in step(catalog, lambda: next(numbers)).puts:
            catalog.put(entry)
    table = catalog.table("db", "t")
    assert table is not None
    return table


def rename(old: str, new: str) -> Callable[[Catalog, Callable[[], int]], changes.Change]:
    return lambda c, i: changes.rename_tag(c, i, "db", "t", old, new)


def add(
    name: str, kind: ColumnType = TEXT, *, tag: bool = True
) -> Callable[[Catalog, Callable[[], int]], changes.Change]:
    return lambda c, i: changes.add_column(c, i, "db", "t", Column(name, kind), tag=tag)


def drop(name: str, *, tag: bool = True) -> Callable[[Catalog, Callable[[], int]], changes.Change]:
    return lambda c, i: changes.drop_column(c, i, "db", "t", name, tag=tag)


def test_a_name_is_stored_as_it_was_first() -> None:
    assert altered(rename("a", "b")).stored_names["b"] == ("a",)
    assert altered(rename("a", "b"), rename("b", "c")).stored_names["c"] == ("a",)
    assert altered(rename("a", "b"), rename("b", "a")).stored_names["a"][0] == "a"
    assert written(altered(add("n")).stored_names) == {}


def test_a_new_column_under_an_old_name_is_another_one() -> None:
    assert written(altered(rename("a", "b"), add("a")).stored_names) == {"b": "a", "a": "a#102"}
    assert written(altered(drop("a"), add("a")).stored_names) == {"a": "a#102"}
    assert written(altered(drop("a"), add("A")).stored_names) == {"A": "A#102"}
    assert written(altered(drop("v", tag=False), add("v", tag=False)).stored_names) == {
        "v": "v#102"
    }
    twice = altered(rename("a", "b"), add("a"), rename("a", "c"), add("a"))
    assert written(twice.stored_names) == {"b": "a", "c": "a#102", "a": "a#104"}


def test_what_earlier_builds_renamed_is_read_under_both_names() -> None:
    first = TableVersion(100, COLUMNS, (Column("a", INT),))
    second = TableVersion(101, COLUMNS, (Column("b", INT),), (("a", "b"),))
    table = Table(7, "db", "t", "stable", "in.db", 1, "ms", (first, second))
    assert table.stored_names["b"] == ("b", "a")
    again = dataclasses.replace(
        table,
        versions=(
            first,
            second,
            TableVersion(102, COLUMNS, (Column("c", INT),), (("b", "c"),), (("c", "b"),)),
        ),
    )
    assert again.stored_names["c"] == ("b", "a")


def test_the_catalog_keeps_them() -> None:
    table = altered(rename("a", "b"), add("a"))
    assert entries.from_record(entries.read(entries.to_value(table, 1))) == table


def test_rows_and_values_under_present_names() -> None:
    names = altered(rename("a", "b"), add("a")).stored_names
    rows = pl.DataFrame(
        {"tbname": ["t"], "ts": [1], "v": [2], "a": [3], "a#102": ["x"], "_op": [0]}
    )
    assert present_rows(names, rows).to_dicts() == [
        {"tbname": "t", "_op": 0, "ts": 1, "v": 2, "b": 3, "a": "x"}
    ]
    assert present(names, {"ts": 1, "a": 3}) == {"ts": 1, "b": 3}
    dropped = altered(drop("a"), add("a")).stored_names
    assert present(dropped, {"a": 3, "z": 1}) == {"z": 1}
    assert "a" not in present_rows(dropped, rows.drop("a#102")).columns


@settings(max_examples=drawn(60), deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("rad"), st.sampled_from("abz"), st.sampled_from("abz")),
        max_size=8,
    )
)
def test_no_two_columns_share_a_stored_name_ever(steps: Sequence[tuple[str, str, str]]) -> None:
    numbers = count(101)
    first = TableVersion(100, COLUMNS, (Column("a", INT), Column("z", INT)))
    catalog = Catalog(
        [Database(9, "db"), Table(7, "db", "t", "stable", "in.db", 1, "ms", (first,))]
    )
    #: what each tag is, by its name: the number of the column
    model = {"a": 0, "z": 1}
    made = count(2)
    owner = {"a": 0, "z": 1}
    for what, one, other in steps:
        if what == "r" and one in model and other not in model:
            step = rename(one, other)
            model[other] = model.pop(one)
        elif what == "a" and one not in model:
            step = add(one)
            model[one] = next(made)
        elif what == "d" and one in model and len(model) > 1:
            step = drop(one)
            del model[one]
        else:
            continue
        for entry in step(catalog, lambda: next(numbers)).puts:
            catalog.put(entry)
        table = catalog.table("db", "t")
        assert table is not None
        for name, number in model.items():
            assert owner.setdefault(table.stored_names[name][0], number) == number
