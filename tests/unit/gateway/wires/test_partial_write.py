"""Lines of one body that do not fit cost only themselves, and the answers are InfluxDB's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.layout import RowLayout
from gateway.wires.influx_write import error_v1, error_v2
from gateway.wires.lines import parse
from gateway.wires.partial_write import MOST_REFUSED, PartialWrite, agreeing, fitting, shapes
from gateway.wires.point_writer import _needs
from gateway.wires.points import LineError, Point
from penstock.catalog.model import Table, TableVersion
from penstock.errors import CatalogError
from penstock.sql.plan import Column
from penstock.types import ColumnType

#: 2026-01-01
NOW = 1_767_225_600_000
COLUMNS = (
    Column("_ts", ColumnType("TIMESTAMP")),
    Column("n", ColumnType("BIGINT")),
    Column("v", ColumnType("DOUBLE")),
    Column("s", ColumnType("VARCHAR", 8)),
)
TAGS = (Column("host", ColumnType("VARCHAR", 64)),)
LAYOUT = RowLayout(1, 2, "db", "cpu", "in.db", 1, COLUMNS, TAGS, "ms", 86_400_000, False)


def row(**fields: Any) -> dict[str, Any]:
    return {"tbname": "t1", "host": "a", "_ts": NOW, **fields}


def test_rows_that_do_not_fit_are_told_apart() -> None:
    rows = [
        row(v=1.0),
        row(v="warm"),
        row(n=1),
        row(n=1.5),
        row(n=2.0),
        row(s="x" * 9),
        row(s="short"),
        row(v=1.0, _ts=10**17),
        row(v=1.0, _ts=NOW + 10**9),
        row(tbname="", v=1.0),
        row(v=True),
    ]
    kept, refused = fitting(LAYOUT, rows, NOW)
    assert kept == [0, 2, 4, 6, 10] and sorted(refused) == [1, 3, 5, 7, 8, 9]
    assert (
        refused[1] == '"warm" is not DOUBLE'
        and "MAX_AHEAD" in refused[8]
        and "longer than 8" in refused[5]
    )


def test_a_body_of_bad_lines_is_not_looked_through_for_ever() -> None:
    rows = [row(v="warm")] * (MOST_REFUSED + 1000) + [row(v=1.0)]
    kept, refused = fitting(LAYOUT, rows, NOW)
    assert kept == [] and len(refused) == len(rows) and "not looked at" in refused[len(rows) - 1]


def test_a_name_is_a_tag_or_a_field() -> None:
    table = Table(1, "db", "cpu", "stable", "in.db", 1, "ms", (TableVersion(2, COLUMNS, TAGS),))
    points, _ = parse(
        "cpu,host=a v=1\ncpu,v=a n=1i\ncpu host=1\ncpu,zone=z v=2\ncpu zone=3\ncpu,q=1 Q=2\ncpu n=1i"
    )
    kept, refused = agreeing(points, table)
    assert [p.line for p in kept] == [1, 4, 7] and [e.line for e in refused] == [2, 3, 5, 6]
    kept, refused = agreeing(points, None)
    assert [p.line for p in kept] == [1, 4, 7] and [e.line for e in refused] == [2, 3, 5, 6]
    assert [c.name for c in _needs(kept)[0]] == ["v", "n"]


def test_booleans_and_numbers_do_not_stand_for_one_another() -> None:
    columns = (*COLUMNS, Column("wide", ColumnType("BOOL")))
    table = Table(1, "db", "cpu", "stable", "in.db", 1, "ms", (TableVersion(2, columns, TAGS),))
    points, _ = parse(
        'cpu v=t\ncpu n=true\ncpu wide=1\ncpu wide=f,v=2,s="t"\ncpu w=1,V=3\ncpu w=t\ncpu N=2u'
    )
    kept, refused = agreeing(points, table)
    assert [p.line for p in kept] == [4, 5, 7] and [e.line for e in refused] == [1, 2, 3, 6]
    assert refused[0].message == (
        'line 1: field type conflict: input field "v" on measurement "cpu" is type boolean,'
        " already exists as type number"
    )


def test_points_of_one_shape_stand_together() -> None:
    points, _ = parse("m,a=1 v=1\nm v=2\nm,a=2 v=3\nm,a=1 v=1,w=2")
    assert [[p.line for p in some] for some in shapes(points)] == [[1, 3], [2], [4]]


def body(response: Any) -> Any:
    return json.loads(response.body)


def test_the_answer_of_a_partial_write() -> None:
    error = PartialWrite([LineError("second", 7), LineError("first", 2)], 3)
    text = "partial write: line 2: first; line 7: second dropped=2"
    assert (error_v1(error).status, body(error_v1(error))) == (400, {"error": text})
    said = body(error_v2(error))
    assert (said["code"], said["message"], said["line"]) == ("invalid", text, 2)
    assert said["error"]["lines"] == [
        {"line": 2, "message": "line 2: first"},
        {"line": 7, "message": "line 7: second"},
    ]
    assert body(error_v1(PartialWrite([LineError("all", 1)], 0))) == {
        "error": "line 1: all dropped=1"
    }


@pytest.mark.parametrize("form", [error_v1, error_v2])
def test_other_errors_have_the_same_forms(form: Any) -> None:
    answer = form(CatalogError("there is none", code="E_NO_DATABASE", hint="make it"))
    assert answer.status == 404
    assert body(answer).get("message", body(answer)["error"]) in (
        "there is none",
        "there is none (make it)",
    )


def test_a_long_list_of_bad_lines_is_cut() -> None:
    error = PartialWrite([LineError("no", n) for n in range(1, 1000)], 1)
    assert (
        len(error.message) < 200
        and error.message.endswith("… dropped=999")
        and len(error.to_dict()["lines"]) == 100
    )


def test_points_are_named_by_the_line_they_are_from() -> None:
    (point,), _ = parse("a.b v=1")
    assert point == Point("a.b", (), {"v": 1.0}, None, 1)
