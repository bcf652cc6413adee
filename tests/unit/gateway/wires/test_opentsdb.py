"""OpenTSDB's put, in both forms."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.wires import puts
from penstock.errors import SchemaError
from tests.unit.gateway.wires.kit import Wires, key

JSON = "/opentsdb/v1/put/json/d"
TELNET = "/opentsdb/v1/put/telnet/d"
#: 2024-01-01
T0 = 1_704_067_200


def put(**fields: Any) -> dict[str, Any]:
    return {"metric": "cpu", "timestamp": T0, "value": 1, "tags": {"host": "a"}} | fields


async def test_points_of_json_make_a_table_of_each_metric(wires: Wires) -> None:
    sent = [
        put(),
        put(timestamp=T0 * 1000 + 250, value=2.5, tags={"host": "b", "core": 3, "on": True}),
        put(timestamp=str(T0 + 1), value="4e1"),
        put(metric="mem", value=7, tags={}),
    ]
    assert await wires.post(JSON, json.dumps(sent)) == (204, "")
    assert await wires.post(JSON, json.dumps(put(timestamp=T0 + 2))) == (204, "")
    rows = await wires.sql(
        "SELECT CAST(_ts AS BIGINT), _value, host, core, `on` FROM cpu ORDER BY _ts"
    )
    assert rows == [
        (T0 * 1000, 1.0, "a", None, None),
        (T0 * 1000 + 250, 2.5, "b", "3", "true"),
        (T0 * 1000 + 1000, 40.0, "a", None, None),
        (T0 * 1000 + 2000, 1.0, "a", None, None),
    ]
    assert await wires.sql("SELECT _value FROM mem") == [(7.0,)]
    assert await wires.sql("SELECT count(*) FROM (SELECT DISTINCT tbname FROM cpu)") == [(2,)]


async def test_lines_with_put_in_front_and_without(wires: Wires) -> None:
    lines = f"put cpu {T0} 1 host=a\n\ncpu {T0}500 2.5   host=a\r\nput put {T0} 3 host=a\n"
    assert (await wires.post(TELNET, lines))[0] == 204
    assert (await wires.post(TELNET, f"cpu {T0 + 1} -3 host=a"))[0] == 204
    rows = await wires.sql("SELECT CAST(_ts AS BIGINT), _value FROM cpu ORDER BY _ts")
    assert rows == [(T0 * 1000, 1.0), (T0 * 1000 + 500, 2.5), (T0 * 1000 + 1000, -3.0)]
    assert await wires.sql("SELECT _value FROM `put`") == [(3.0,)]


async def test_a_bad_point_costs_only_itself(wires: Wires) -> None:
    status, said = await wires.post(JSON, json.dumps([put(), put(value="warm"), put(metric="a.b")]))
    assert status == 400 and [e["line"] for e in said["error"]["lines"]] == [2, 3]
    assert await wires.sql("SELECT _value FROM cpu") == [(1.0,)]
    wires.gateway.define("ALTER DATABASE d DOT_TO_UNDERSCORE 1")
    assert (await wires.post(JSON, json.dumps(put(metric="a.b"))))[0] == 204
    assert await wires.sql("SELECT _value FROM a_b") == [(1.0,)]


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ([], "a point is an object"),
        (7, "a point is an object"),
        (put(metric=""), "no metric"),
        (put(metric=["x"]), "no metric"),
        (put(timestamp=None), "the timestamp"),
        (put(timestamp=True), "the timestamp"),
        (put(timestamp=1.5), "the timestamp"),
        (put(timestamp=-1), "the timestamp"),
        (put(timestamp=10**11), "the timestamp"),
        (put(value=None), "not a number"),
        (put(value="0x1"), "not a number"),
        (put(value="1" * 400), "not a number"),
        (put(value=10**400), "not a number"),
        (put(value={}), "not a number"),
        (put(tags=["a"]), "tags is not an object"),
        (put(tags={"a": None}), "no text"),
        (put(tags={"a": ""}), "no name or no value"),
        (put(tags={"": "a"}), "no name or no value"),
        (put(tags={"a": "\ud800"}), "is no text"),
        (put(metric="\udfff"), "is no text"),
    ],
)
def test_points_that_are_none(sent: Any, words: str) -> None:
    points, (bad,) = puts.from_json(json.dumps([sent]))
    assert points == [] and words in str(bad)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cpu", "a point is"),
        (f"cpu {T0}", "a point is"),
        (f"cpu {T0} x host=a", "not a number"),
        (f"cpu {T0} nan host=a", "not a number"),
        (f"cpu {T0} 1 host", "not tag=value"),
        (f"cpu {T0} 1 host=", "no name or no value"),
        (f"cpu {T0} 1 a=1 a=2", "given twice"),
        ("cpu now 1 a=1", "the timestamp"),
    ],
)
def test_lines_that_are_none(line: str, words: str) -> None:
    points, (bad,) = puts.from_lines(line)
    assert points == [] and words in str(bad)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "NaN]", '{"value": ' + "1" * 5000 + "}"])
def test_what_is_no_json_is_told_so(text: str) -> None:
    with pytest.raises(SchemaError):
        puts.from_json(text)


def test_a_body_of_very_many_points_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(puts, "MOST_POINTS", 10)
    with pytest.raises(SchemaError) as wrong:
        puts.from_lines("\n" * 10)
    assert wrong.value.code == "E_TOO_LARGE"


async def test_who_may_put(wires: Wires) -> None:
    body = json.dumps(put())
    bob = wires.as_user(wires.gateway.allow("bob"))
    d = wires.gateway.catalog.database("d")
    assert d is not None
    for path in (JSON, TELNET):
        for headers in ({}, key(password="wrong")):
            assert (await wires.post(path, body, headers))[0] == 401
        assert (await wires.post(path, b"\xff", bob))[0] == 403, "before the body is looked at"
        assert (await wires.post(path, b"\xff"))[0] == 400
        assert (await wires.post(path.replace("/d", "/no"), body))[0] == 404
        assert (await wires.post(path, b"x" * (2 << 20)))[0] == 413
    ann = wires.as_user(wires.gateway.allow("ann", "READ", on=d.id))
    status, said = await wires.post(JSON, body, ann)
    assert (status, said["error"]["code"]) == (403, "E_FORBIDDEN")
    assert wires.gateway.catalog.table("d", "cpu") is None
