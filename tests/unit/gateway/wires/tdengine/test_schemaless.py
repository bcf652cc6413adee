"""Points over TDengine's WebSocket: action `insert`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.gateway.wires.kit import Wires
from tests.unit.gateway.wires.tdengine.kit import connect, logged_in


@pytest.mark.parametrize(
    ("given", "sql", "row"),
    [
        (
            {"protocol": 1, "precision": "ms", "data": "cpu,host=a v=0.5,n=3i 1772355600001"},
            "SELECT _ts, host, v, n FROM cpu",
            (1_772_355_600_001, "a", 0.5, 3),
        ),
        (
            {"protocol": 2, "precision": "", "data": "load 1772355600 0.5 host=a"},
            "SELECT _ts, host, _value FROM load",
            (1_772_355_600_000, "a", 0.5),
        ),
        (
            {
                "protocol": 3,
                "data": '[{"metric": "temp", "timestamp": 1772355600, "value": 1, "tags": {"a": "b"}}]',
            },
            "SELECT _ts, a, _value FROM temp",
            (1_772_355_600_000, "b", 1.0),
        ),
    ],
)
async def test_points_become_rows(
    wires: Wires, given: dict[str, Any], sql: str, row: tuple[Any, ...]
) -> None:
    client = await logged_in(wires)
    told = await client.good("insert", ttl=0, **given)
    assert (told["affected_rows"], told["total_rows"]) == (1, 1)
    assert await client.rows(sql) == [row]


async def test_a_bad_line_is_told(wires: Wires) -> None:
    client = await logged_in(wires)
    data = "cpu,host=a v=1 1772355600000000000\ncpu"
    reply = await client.ask("insert", protocol=1, data=data)
    assert reply["code"] and "line" in reply["message"]
    assert await client.rows("SELECT v FROM cpu") == [(1.0,)]


@pytest.mark.parametrize(
    "given",
    [
        {"protocol": 0, "data": "x v=1"},
        {"protocol": 9, "data": "x v=1"},
        {"protocol": "1", "data": "x v=1"},
        {"protocol": 1, "precision": "years", "data": "x v=1"},
        {"protocol": 1, "data": 1},
        {"protocol": 1, "data": "x v=1", "table_name_key": "host"},
        {"protocol": 3, "data": "{"},
    ],
)
async def test_what_cannot_be_taken_is_refused(wires: Wires, given: dict[str, Any]) -> None:
    client = await logged_in(wires)
    reply = await client.ask("insert", **given)
    assert reply["code"] and "bug" not in reply["message"]


async def test_rights_and_a_database_are_needed(wires: Wires) -> None:
    client = await connect(wires)
    await client.log_in()
    reply = await client.ask("insert", protocol=1, data="cpu v=1")
    assert reply["code"] == 0x2616
    token = wires.login.token(wires.gateway.allow("rita", "READ"))
    reader = await connect(wires, token=token)
    await reader.good("conn", db="d")
    assert (await reader.ask("insert", protocol=1, data="cpu v=1"))["code"] == 0x2644
