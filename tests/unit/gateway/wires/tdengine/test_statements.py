"""Prepared statements over TDengine's WebSocket, in both forms that connectors have."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pytest

from gateway.wires.tdengine import open_statements
from gateway.wires.tdengine.bound_tables import BoundTable
from gateway.wires.tdengine.prepared import prepare, quote_table, split_table, statements_of
from penstock.errors import PenstockError, SchemaError
from tests.unit.gateway.wires.kit import Wires
from tests.unit.gateway.wires.tdengine.kit import TaosClient, connect, logged_in
from tests.unit.gateway.wires.tdengine.layout import Bound, write_block, write_bound

_T0 = 1_772_355_600_000
_INTO_CHILD = "INSERT INTO ? USING m TAGS (?, ?) VALUES (?, ?, ?)"


@pytest.fixture
async def client(wires: Wires) -> TaosClient:
    made = await logged_in(wires)
    await made.execute(
        "CREATE STABLE m (ts TIMESTAMP, v DOUBLE, n NCHAR(8)) TAGS (g INT, site VARCHAR(8))"
    )
    return made


async def _init(client: TaosClient, sql: str) -> int:
    number = int((await client.good("init"))["stmt_id"])
    told = await client.good("prepare", stmt_id=number, sql=sql)
    assert told["is_insert"] is (sql[:6].upper() == "INSERT")
    return number


async def _init_2(client: TaosClient, sql: str) -> tuple[int, dict[str, Any]]:
    number = int((await client.good("stmt2_init", single_stb_insert=True))["stmt_id"])
    return number, await client.good("stmt2_prepare", stmt_id=number, sql=sql, get_fields=True)


async def _bind_2(client: TaosClient, number: int, tables: Sequence[Bound]) -> dict[str, Any]:
    content = struct.pack("<Hi", 1, -1) + write_bound(tables)
    reply: dict[str, Any] = await client.ask_bytes("stmt2_bind", 9, number, content)
    return reply


async def test_rows_are_bound_table_by_table_as_json(client: TaosClient) -> None:
    number = await _init(client, _INTO_CHILD)
    for name, tags in (("a", [1, "x"]), ("d.b", [2, None])):
        await client.good("set_table_name", stmt_id=number, name=name)
        await client.good("set_tags", stmt_id=number, tags=tags)
        columns = [[_T0, "2026-03-01T09:00:00.001Z"], [0.5, None], ["ä", None]]
        await client.good("bind", stmt_id=number, columns=columns)
        await client.good("add_batch", stmt_id=number)
    assert (await client.good("exec", stmt_id=number))["affected"] == 4
    assert (await client.good("exec", stmt_id=number))["affected"] == 0
    assert await client.rows("SELECT tbname, g, site, ts, v, n FROM m ORDER BY tbname, ts") == [
        ("a", 1, "x", _T0, 0.5, "ä"),
        ("a", 1, "x", _T0 + 1, None, None),
        ("b", 2, None, _T0, 0.5, "ä"),
        ("b", 2, None, _T0 + 1, None, None),
    ]
    await client.send("close", stmt_id=number)
    assert "stmt is nil" in (await client.ask("exec", stmt_id=number))["message"]


async def test_rows_are_bound_as_blocks(client: TaosClient) -> None:
    number = await _init(client, _INTO_CHILD)
    await client.good("set_table_name", stmt_id=number, name="a")
    told = (await client.good("get_tag_fields", stmt_id=number))["fields"]
    assert [(f["name"], f["field_type"], f["bytes"]) for f in told] == [
        ("g", 4, 4),
        ("site", 8, 10),
    ]
    told = (await client.good("get_col_fields", stmt_id=number))["fields"]
    assert [(f["name"], f["field_type"]) for f in told] == [("ts", 9), ("v", 7), ("n", 10)]
    assert (await client.good("stmt_num_params", stmt_id=number))["num_params"] == 5
    tags = write_block([(4, [7]), (8, ["y"])])
    assert (await client.ask_bytes("set_tags", 1, number, tags))["code"] == 0
    rows = write_block([(9, [_T0, _T0 + 1]), (7, [1.5, None]), (10, [None, "ü"])])
    assert (await client.ask_bytes("bind", 2, number, rows))["code"] == 0
    assert (await client.good("exec", stmt_id=number))["affected"] == 2
    found = await client.rows("SELECT g, site, ts, v, n FROM a ORDER BY ts")
    assert found == [(7, "y", _T0, 1.5, None), (7, "y", _T0 + 1, None, "ü")]


async def test_a_table_may_be_written_in_the_text(client: TaosClient) -> None:
    await client.execute("CREATE TABLE t (ts TIMESTAMP, v INT, w INT)")
    number = await _init(client, "INSERT INTO d.t (ts, w, v) VALUES (?, 5, ?)")
    await client.good("bind", stmt_id=number, columns=[[_T0, _T0 + 1], [1, 2]])
    assert (await client.good("exec", stmt_id=number))["affected"] == 2
    assert await client.rows("SELECT v, w FROM t ORDER BY ts") == [(1, 5), (2, 5)]


def _child(number: int, rows: int) -> Bound:
    times = [_T0 + k for k in range(rows)]
    return (
        f"c{number}",
        [(4, number), (8, f"s{number}")],
        [(9, times), (7, [None] * rows), (10, ["ö"] * rows)],
    )


async def test_each_placeholder_tells_the_precision_of_times(client: TaosClient) -> None:
    """TDengine's JDBC driver takes it from the first of them, which is none of a time."""
    await client.execute("CREATE DATABASE fine PRECISION 'ns' PARTITIONS 1")
    await client.execute(
        "CREATE STABLE fine.m (ts TIMESTAMP, v DOUBLE, p DECIMAL(9, 2)) TAGS (g INT)"
    )
    sql = "INSERT INTO ? USING fine.m TAGS (?) VALUES (?, ?, ?)"
    _, told = await _init_2(client, sql)
    assert [f["precision"] for f in told["fields"]] == [2, 2, 2, 2, 9]


async def test_all_is_bound_at_once(client: TaosClient) -> None:
    number, told = await _init_2(client, _INTO_CHILD)
    fields = [(f["name"], f["field_type"], f["bind_type"]) for f in told["fields"]]
    of_tags = [("tbname", 8, 4), ("g", 4, 2), ("site", 8, 2)]
    assert fields == [*of_tags, ("ts", 9, 1), ("v", 7, 1), ("n", 10, 1)]
    assert (told["is_insert"], told["fields_count"]) == (True, 6)
    tables = [_child(i, 700) for i in range(3)]
    assert (await _bind_2(client, number, tables))["code"] == 0
    assert (await client.good("stmt2_exec", stmt_id=number))["affected"] == 2100
    found = await client.rows(
        "SELECT tbname, site, COUNT(*), COUNT(v) FROM m GROUP BY tbname, site"
    )
    assert sorted(found) == [(f"c{i}", f"s{i}", 700, 0) for i in range(3)]
    await client.good("stmt2_close", stmt_id=number)
    assert (await client.ask("stmt2_close", stmt_id=number))["code"]


async def test_a_supertable_takes_names_and_tags_as_columns(client: TaosClient) -> None:
    sql = "INSERT INTO d.m (tbname, ts, v, g, site) VALUES (?, ?, ?, ?, ?)"
    number, told = await _init_2(client, sql)
    assert [f["bind_type"] for f in told["fields"]] == [4, 1, 1, 2, 2]
    tables: list[Bound] = [("z", [(4, 3), (8, "q")], [(9, [_T0, _T0 + 1]), (7, [1.0, 2.0])])]
    await _bind_2(client, number, tables)
    assert (await client.good("stmt2_exec", stmt_id=number))["affected"] == 2
    assert await client.rows("SELECT g, site, v FROM z ORDER BY ts") == [
        (3, "q", 1.0),
        (3, "q", 2.0),
    ]


async def test_a_query_takes_values(client: TaosClient) -> None:
    await client.execute(
        f"INSERT INTO a USING m TAGS (1, 'x') VALUES ({_T0}, 1, '') ({_T0 + 1}, 2, '')"
    )
    sql = "SELECT v FROM m WHERE v > ? AND site = ?"
    number = await _init(client, sql)
    await client.good("bind", stmt_id=number, columns=[[1], ["x"]])
    await client.good("exec", stmt_id=number)
    told = await client.good("use_result", stmt_id=number)
    assert await client.fetch(told["result_id"]) == [(2.0,)]
    assert (await client.ask("use_result", stmt_id=number))["code"]
    number, prepared = await _init_2(client, sql)
    assert (prepared["is_insert"], prepared["fields"], prepared["fields_count"]) == (False, None, 2)
    await _bind_2(client, number, [(None, [], [(7, [0.0]), (8, ["x"])])])
    await client.good("stmt2_exec", stmt_id=number)
    told = await client.good("stmt2_result", stmt_id=number)
    assert await client.fetch_raw(told["id"]) == [(1.0,), (2.0,)]


async def test_a_table_that_is_not_ones_own_tells_nothing(wires: Wires, client: TaosClient) -> None:
    token = wires.login.token(wires.gateway.allow("rita", "READ"))
    reader = await connect(wires, token=token)
    await reader.good("conn", db="d")
    number = await _init(reader, _INTO_CHILD)
    assert (await reader.ask("get_col_fields", stmt_id=number))["code"] == 0x2644
    await reader.good("set_table_name", stmt_id=number, name="a")
    await reader.good("set_tags", stmt_id=number, tags=[1, "x"])
    await reader.good("bind", stmt_id=number, columns=[[_T0], [1], [""]])
    assert (await reader.ask("exec", stmt_id=number))["code"] == 0x2644
    assert await client.rows("SELECT COUNT(*) FROM m") == [(0,)]


async def test_what_does_not_fit_is_refused(client: TaosClient) -> None:
    number = await _init(client, _INTO_CHILD)
    await client.good("bind", stmt_id=number, columns=[[_T0], [1], [""]])
    assert (await client.ask("exec", stmt_id=number))["code"]  # neither name nor tags
    await client.good("set_table_name", stmt_id=number, name="a")
    await client.good("set_tags", stmt_id=number, tags=[1, "x"])
    for columns in (
        [[_T0], [1]],
        [[_T0], [1, 2], ["x"]],
        [[_T0], ["x"], ["x"]],
        [[None], [1], [""]],
    ):
        await client.good("bind", stmt_id=number, columns=columns)
        reply = await client.ask("exec", stmt_id=number)
        assert reply["code"] and reply["stmt_id"] == number
        assert "bug" not in reply["message"]
    for action, args in (
        ("bind", {"columns": [[{}]]}),
        ("bind", {"columns": [1]}),
        ("set_tags", {"tags": [[]]}),
        ("set_table_name", {"name": "a.b.c"}),
        ("set_table_name", {"name": ""}),
        ("prepare", {"sql": "INSERT INTO ? VALUES (:a)"}),
        ("prepare", {"sql": "SELECT 1; SELECT 2"}),
        ("prepare", {"sql": "INSERT INTO a VALUES (?, ?) b VALUES (?, ?)"}),
    ):
        reply = await client.ask(action, stmt_id=number, **args)
        assert reply["code"] and "bug" not in reply["message"], (action, args)
    assert await client.rows("SELECT COUNT(*) FROM m") == [(0,)]


async def test_so_many_statements_may_be_open(client: TaosClient) -> None:
    for _ in range(open_statements.MOST_OPEN):
        await client.good("init")
    assert (await client.ask("init"))["code"] == 0x0139


@pytest.mark.parametrize(
    ("name", "quoted", "split"),
    [
        ("a", "a", (None, "a")),
        ("d.a", "d.a", ("d", "a")),
        ("`d`.`a b`", "d.`a b`", ("d", "a b")),
        ("`a``b`", "`a``b`", (None, "a`b")),
        ("a-b", "`a-b`", (None, "a-b")),
    ],
)
def test_names_of_tables(name: str, quoted: str, split: tuple[str | None, str]) -> None:
    assert (quote_table(name), split_table(name)) == (quoted, split)


@pytest.mark.parametrize("name", ["", ".", "a.", "a.b.c", "`a", "a b", "t VALUES (1)"])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(SchemaError):
        quote_table(name)


def test_many_rows_become_few_statements() -> None:
    prepared = prepare("INSERT INTO ? USING s TAGS (?) VALUES (?, ?)")
    bound = [BoundTable(f"t{i}", [i], [[1] * 400, [2] * 400]) for i in range(5)]
    made = list(statements_of(prepared, ["tag", "column", "column"], bound))
    assert len(made) == 3
    assert all(sql.count("?") == len(values) for sql, values in made)
    one = [BoundTable("t", [1], [[1] * 2500, [2] * 2500])]
    assert [len(v) for _, v in statements_of(prepared, ["tag", "column", "column"], one)] == [
        2001,
        2001,
        1001,
    ]


@pytest.mark.parametrize(
    "sql", ["", "INSERT INTO ?", "INSERT INTO ? VALUES", "?", "INSERT INTO ? SELECT"]
)
def test_texts_that_are_no_statement(sql: str) -> None:
    with pytest.raises(PenstockError):
        prepare(sql)
