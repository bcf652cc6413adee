"""/rest/sqlt and /rest/sqlutc: statements as clients of TDengine 2 send them."""

from __future__ import annotations

import pytest

from tests.unit.gateway.wires.kit import Wires

_TIME = 1_772_355_600_123
_NEEDS = "CREATE STABLE m (ts TIMESTAMP, v DOUBLE, n NCHAR(8)) TAGS (g INT)"


@pytest.fixture
async def filled(wires: Wires) -> Wires:
    wires.gateway.define(_NEEDS)
    await wires.statements.run(f"INSERT INTO a USING m TAGS (1) VALUES ({_TIME}, 0.5, 'ä')")
    return wires


async def test_times_are_numbers_or_texts_in_utc(filled: Wires) -> None:
    for path, time in (("sqlt", _TIME), ("sqlutc", "2026-03-01T09:00:00.123Z")):
        status, said = await filled.post(f"/rest/{path}/d", "SELECT ts, v, n, g FROM m")
        assert (status, said["status"], said["rows"]) == (200, "succ", 1)
        assert said["head"] == ["ts", "v", "n", "g"]
        assert said["column_meta"] == [["ts", 9, 8], ["v", 7, 8], ["n", 10, 8], ["g", 4, 4]]
        assert said["data"] == [[time, 0.5, "ä", 1]]


async def test_a_statement_without_rows_tells_how_many_it_wrote(filled: Wires) -> None:
    status, said = await filled.post("/rest/sqlutc", f"INSERT INTO d.a VALUES ({_TIME + 1}, 1, '')")
    assert status == 200
    assert said == {
        "status": "succ",
        "head": ["affected_rows"],
        "column_meta": [["affected_rows", 4, 4]],
        "data": [[1]],
        "rows": 1,
    }


@pytest.mark.parametrize(
    ("sql", "code"), [("SELEC", 0x2600), ("", 0xFFFF), ("SELECT * FROM d.nothing", 0x2603)]
)
async def test_a_wrong_statement_has_status_200_and_a_code(
    filled: Wires, sql: str, code: int
) -> None:
    status, said = await filled.post("/rest/sqlt", sql)
    assert (status, said["status"], said["code"]) == (200, "error", code)
    assert said["desc"] and said["error"]["code"]


async def test_who_has_no_right_or_no_login_gets_no_rows(filled: Wires) -> None:
    stranger = filled.as_user(filled.gateway.allow("eve"))
    status, said = await filled.post("/rest/sqlt/d", "SELECT * FROM m", stranger)
    assert (status, said["error"]["code"]) == (403, "E_FORBIDDEN")
    status, said = await filled.post("/rest/sqlt/d", "SELECT * FROM m", {})
    assert (status, said["error"]["code"]) == (401, "E_AUTH")


async def test_a_token_in_the_url_logs_in(filled: Wires) -> None:
    reader = filled.gateway.allow("rita", "READ")
    token = filled.login.token(reader)
    status, said = await filled.post("/rest/sqlutc/d", "SELECT v FROM m", {}, token=token)
    assert (status, said["data"]) == (200, [[0.5]])
    status, _ = await filled.post("/rest/sqlutc/d", "SELECT v FROM m", {}, token="x" + token)
    assert status == 401


async def test_a_token_in_the_url_is_no_password(filled: Wires) -> None:
    """Who has but a token gives nobody another password."""
    user = filled.gateway.allow("ann")
    token = filled.login.token(user)
    status, said = await filled.post(
        "/rest/sqlt", "ALTER USER ann PASS 'x1Y2z3w4'", {}, token=token
    )
    assert status == 403, said
