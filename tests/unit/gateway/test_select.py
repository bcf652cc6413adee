from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from gateway.select import Question, aware, error_of
from penstock.errors import OverloadError, RemoteError, SqlSemanticError, SqlSyntaxError


def test_errors_come_back_as_they_were() -> None:
    body = {
        "code": "E_SYNTAX",
        "message": "found x",
        "line": 2,
        "column": 5,
        "snippet": "x\n^",
        "hint": "y",
    }
    error = error_of(flight.FlightServerError(json.dumps(body) + ". gRPC client debug context: {}"))
    assert isinstance(error, SqlSyntaxError)
    assert (error.message, error.line, error.column, error.hint) == ("found x", 2, 5, "y")


@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        ('{"code": "E_TABLE_NOT_EXIST", "message": "m"}', SqlSemanticError, "E_TABLE_NOT_EXIST"),
        ('{"code": "E_OVERLOAD", "message": "m"}', OverloadError, "E_OVERLOAD"),
        ('{"code": "E_INTERNAL", "message": "m"}', RemoteError, "E_REMOTE"),
        ("connection refused {", RemoteError, "E_STORE_DOWN"),
        ("{not json}", RemoteError, "E_STORE_DOWN"),
    ],
)
def test_kinds_of_errors(text: str, kind: type[Exception], code: str) -> None:
    error = error_of(flight.FlightUnavailableError(text))
    assert isinstance(error, kind)
    assert error.code == code


def test_times_get_their_zone() -> None:
    table = aware(pa.table({"t": pa.array([1], pa.timestamp("us")), "v": [1.0]}))
    assert table.schema.field("t").type == pa.timestamp("us", "UTC")
    assert table["t"].to_pylist()[0].isoformat() == "1970-01-01T00:00:00.000001+00:00"


def test_a_ticket_has_parameters_beside_the_text() -> None:
    sql = "SELECT a FROM t WHERE b = ? AND c = ?"
    plain = json.loads(Question(sql, None, "UTC", 3, {("in.d", 0): 5}).ticket())
    assert plain == {
        "sql": sql,
        "database": "",
        "timezone": "UTC",
        "revision": 3,
        "after": {"in.d:0": 5},
    }
    given = json.loads(Question(sql, "d", "UTC", 3, {}, [b"\0", "it's"]).ticket())
    assert given["sql"] == sql and given["parameters"] == [{"$bytes": "00"}, "it's"]
