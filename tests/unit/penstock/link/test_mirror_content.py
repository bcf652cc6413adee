"""The content of a followed table: description, rows, cycles and the token."""

from __future__ import annotations

import dataclasses
from typing import Any

import polars as pl
import pytest

from penstock.errors import RemoteError
from penstock.link.description import Description
from penstock.link.mirror_content import MirrorContent
from penstock.link.remote_request import MirrorOptions, RemoteRequest
from penstock.link.row_buffer import versions
from penstock.rows.versions import CLEAR
from tests.unit.penstock.link.far_side import READINGS, message, rows


def content(definition: Description | None = None, **options: Any) -> MirrorContent:
    return MirrorContent(RemoteRequest(MirrorOptions(**options), definition), "q/t")


def described(**options: Any) -> MirrorContent:
    made = content(**options)
    made.describe(READINGS)
    return made


def shown(made: MirrorContent) -> list[dict[str, Any]]:
    return made.to_arrow(made.frame(), made.description).select(["v", "site"]).to_pylist()


def test_nobody_knows_it_before_it_is_described() -> None:
    made = content()
    for ask in (lambda: made.description, lambda: made.schema, lambda: made.columns):
        with pytest.raises(RemoteError, match="nobody knows yet what q/t looks like"):
            ask()
    assert content(READINGS).columns == ["ts", "v", "site"]


def test_a_description_is_of_the_same_table_once_rows_are_here() -> None:
    made = content()
    assert not made.describe(READINGS)
    assert not made.describe(READINGS)
    made.reset([], "7.token")
    assert made.describe(READINGS)
    assert not made.describe(dataclasses.replace(READINGS, id=8))


def test_only_the_columns_that_were_asked_for_are_shown() -> None:
    made = described(columns=("site", "V"))
    assert made.columns == ["site", "v"]
    assert made.schema.names == ["site", "v"]
    assert made.to_arrow(None, READINGS).schema == made.schema


def test_messages_change_rows() -> None:
    made = described()
    assert made.frame() is None
    made.apply(message(rows(("a", 1, 10), ("b", 2, 20)), type="rows"))
    made.apply(message(type="tags", tables=["b"], tags='{"site": 5}'))
    assert shown(made) == [{"v": 10, "site": 0}, {"v": 20, "site": 5}]
    made.apply(message(type="delete", low=1, high=1, tables=["b"]))
    made.apply(message(type="delete", low=1, high=1, tables=None))
    made.apply(message(type="tags"))
    made.apply(message(type="unknown"))
    assert shown(made) == [{"v": 20, "site": 5}]


def test_a_reset_begins_with_the_given_rows() -> None:
    made = described()
    made.apply(message(rows(("a", 1, 10)), type="rows"))
    frame: pl.DataFrame = versions(rows(("b", 2, 20)), READINGS, READINGS.fields)
    made.reset([frame], "t")
    assert (shown(made), made.token) == ([{"v": 20, "site": 0}], "t")


def test_a_new_schema_is_that_of_the_rows_from_then_on() -> None:
    made = described()
    made.apply(message(rows(("a", 1, 10)), type="rows"))
    made.change_schema(
        message(table=dataclasses.replace(READINGS, tags=()).to_json(), type="schema")
    )
    assert made.columns == ["ts", "v"]
    assert made.frame() is not None


def test_a_blink_table_keeps_no_rows_but_those_of_a_cycle() -> None:
    made = described(blink=True)
    given = message(rows(("a", 1, 10), ("a", 2, 20), ("a", 3, 30)), cycles=[1, 2])
    made.apply(given)
    assert made.frame() is None and not made.has_cycle
    assert made.cycle() == made.schema.empty_table()
    first, second = made.cycles(given)
    assert (first["v"].to_pylist(), second["v"].to_pylist()) == ([10], [20, 30])
    made.begin_cycle(second)
    assert made.has_cycle and made.cycle() is second
    made.begin_cycle(None)
    assert not made.has_cycle
    thirds = made.cycles(message(given.rows, cycles=[1, 1, 1]))
    assert [cycle["v"].to_pylist() for cycle in thirds] == [[10], [20], [30]]
    (whole,) = made.cycles(message(rows(("a", 1, 10), ("a", 2, 20))))
    assert whole.num_rows == 2


def test_updates_show_tables_and_what_became_of_rows_but_no_clears() -> None:
    made = described(columns=("v",))
    shown_rows = made.visible(rows(("a", 1, 10), op=1))
    assert shown_rows.column_names == ["_op", "tbname", "v"]
    assert shown_rows.num_rows == 1
    assert made.visible(rows(("a", 1, 10), op=CLEAR)).num_rows == 0
    bare = rows(("a", 1, 10)).drop_columns(["_op", "tbname"])
    assert made.visible(bare).column_names == ["v"]
